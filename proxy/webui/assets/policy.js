// Shows the policy of a topic, with the lines of the configuration.

import { byId, create } from "./elements.js";
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
  place.replaceChildren(create("p", { className: "quiet", text: "Loading …" }));
  try {
    const response = await ask(`api/policy?topic=${encodeURIComponent(topic)}`);
    const text = response.ok ? (await response.json()).lines.join("\n") : (await response.text()).trim();
    place.replaceChildren(create("pre", { text, tabindex: "0", role: "region", "aria-label": "Topic policy" }));
  } catch {
    place.replaceChildren(create("p", { text: "The proxy does not respond." }));
  }
}
