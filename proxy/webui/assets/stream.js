// The proxy's figures as they come, for as long as the page is open; a token is kept until the tab is closed.

const KEY = "sluicegate token";
const AGAIN_MS = 2000;

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
};

export function ask(path, signal) {
  const headers = token.get() === null ? {} : { Authorization: `Bearer ${token.get()}` };
  return fetch(path, { headers, signal, cache: "no-store" });
}

// `told.live`, `told.trouble`, `told.rejected` are called with what comes; ends where it is rejected.
export async function follow(told, signal) {
  while (!signal.aborted) {
    try {
      const answer = await ask("api/stream", signal);
      if (answer.status === 401 || answer.status === 403) {
        told.rejected(answer.status, await answer.text());
        return;
      }
      if (answer.ok) await read(answer.body, told);
      told.lost(answer.ok ? "the connection has ended" : (await answer.text()).trim());
    } catch (error) {
      if (signal.aborted) return;
      told.lost("the proxy does not answer");
    }
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
}

async function read(body, told) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let gathered = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const messages = (gathered + value).split("\n\n");
    gathered = messages.pop();
    for (const message of messages) take(message, told);
  }
}

function take(message, told) {
  let name = "message";
  let data = "";
  for (const line of message.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (data && name in told) told[name](JSON.parse(data));
}
