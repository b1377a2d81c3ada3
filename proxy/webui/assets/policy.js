// What applies to a topic, and from which line of the configuration.

import { byId, made } from "./elements.js";
import { ask } from "./stream.js";

export function setUpPolicy() {
  byId("policy-form").addEventListener("submit", (event) => {
    event.preventDefault();
    explain(byId("policy-topic").value);
  });
}

export async function showPolicyOf(topic) {
  byId("policy-topic").value = topic;
  byId("policy-title").scrollIntoView({ block: "start" });
  byId("policy-topic").focus({ preventScroll: true });
  await explain(topic);
}

async function explain(topic) {
  const place = byId("policy");
  place.replaceChildren(made("p", { className: "quiet", text: "The configuration is read …" }));
  try {
    const answer = await ask(`api/policy?topic=${encodeURIComponent(topic)}`);
    const text = answer.ok ? (await answer.json()).lines.join("\n") : (await answer.text()).trim();
    place.replaceChildren(made("pre", { text, tabindex: "0", role: "region", "aria-label": "The policy" }));
  } catch {
    place.replaceChildren(made("p", { text: "The proxy does not answer." }));
  }
}
