// Reads the stream of live data while the web UI is open. The token is kept until the tab is closed.

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

// Calls `handlers.live`, `handlers.problem` and `handlers.rejected` with each message. Ends after a rejection.
export async function follow(handlers, signal) {
  while (!signal.aborted) {
    try {
      const response = await ask("api/stream", signal);
      if (response.status === 401 || response.status === 403) {
        handlers.rejected(response.status, await response.text());
        return;
      }
      if (response.ok) await read(response.body, handlers);
      handlers.lost(response.ok ? "connection closed" : (await response.text()).trim());
    } catch (error) {
      if (signal.aborted) return;
      handlers.lost("the proxy does not respond");
    }
    await new Promise((done) => setTimeout(done, AGAIN_MS));
  }
}

async function read(body, handlers) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let gathered = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const messages = (gathered + value).split("\n\n");
    gathered = messages.pop();
    for (const message of messages) take(message, handlers);
  }
}

function take(message, handlers) {
  let name = "message";
  let data = "";
  for (const line of message.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (data && name in handlers) handlers[name](JSON.parse(data));
}
