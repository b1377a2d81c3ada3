// The policy of a topic with the lines of the configuration, the changes of policies, and what other timestamp bounds
// would reject.

import { Distances } from "./distances.js";
import { html } from "./html.js";
import { Section } from "./parts.js";
import { href, setParams } from "./route.js";
import { PolicyChanges } from "./policy_changes.js";
import { SharedChanges } from "./shared_changes.js";
import { PolicyOf } from "./topic_policy.js";
import { topicRows } from "./topics.js";

export function Policy({ store, route }) {
  const topic = route.params.get("topic") ?? "";
  const bounds = store.state.bounds.map((one) => one.name).filter((name) => !/[*?[/ ]/.test(name) && name !== "defaults");
  const known = [...new Set([...bounds, ...topicRows(store).map((row) => row.name).filter((name) => name)])].sort();
  const explain = (event) => {
    event.preventDefault();
    setParams({ topic: event.target.elements.topic.value });
  };
  return html`
    <${Section} id="policy-section" title="Topic policy">
      <form id="policy-form" class="filters" onSubmit=${explain}>
        <label for="policy-topic">Topic</label>
        <span class="row"><input id="policy-topic" name="topic" type="text" maxlength="249" list="known-topics" autocomplete="off" spellcheck="false" required defaultValue=${topic} key=${topic} /> <button type="submit">Explain</button></span>
        <datalist id="known-topics">${known.map((name) => html`<option key=${name} value=${name}></option>`)}</datalist>
      </form>
      <div id="policy" role="status" aria-live="polite"><${PolicyOf} topic=${topic} /></div>
      ${topic && html`<p class="quiet"><a href=${href("topic", { name: topic })}>Violations of this topic</a></p>`}
    <//>
    <${Section} id="changes-section" title="Policy changes"><${PolicyChanges} now=${store.state.time_ms} /><//>
    <${SharedChanges} route=${route} now=${store.state.time_ms} />
    <${Section} id="distance-section" title="Timestamp distance from now"><${Distances} state=${store.state} /><//>`;
}
