// Shows how to correct a producer, by client library (docs/how-to/my-producer-gets-invalid-timestamp.md has the same
// lines).

import { html } from "./html.js";
import { Choice, Section } from "./parts.js";
import { href } from "./route.js";

// Each entry has the software name that the library reports, or the beginning of its default client id, and the correct
// call.
const LIBRARIES = [
  { name: "Java kafka-clients", guide: "java", software: /^apache-kafka-java/, clientId: /^producer-\d+$/,
    timestamp: "new ProducerRecord<>(topic, null, Instant.now().toEpochMilli(), key, value)", key: "new ProducerRecord<>(topic, key, value)" },
  { name: "confluent-kafka-python", guide: "confluent-kafka", software: /^confluent-kafka-python/, clientId: null,
    timestamp: "producer.produce(topic, value, key, timestamp=time.time_ns() // 1_000_000)", key: "producer.produce(topic, value, key)" },
  { name: "confluent-kafka-go", software: /^confluent-kafka-go/, clientId: null,
    timestamp: "kafka.Message{TopicPartition: tp, Key: key, Value: value, Timestamp: time.Now()}", key: "kafka.Message{TopicPartition: tp, Key: key, Value: value}" },
  { name: "confluent-kafka-dotnet", software: /^confluent-kafka-dotnet/, clientId: null,
    timestamp: "new Message<K, V> { Key = key, Value = value, Timestamp = new Timestamp(DateTimeOffset.UtcNow) }", key: "new Message<K, V> { Key = key, Value = value }" },
  { name: "librdkafka", software: /rdkafka/, clientId: /^rdkafka/,
    timestamp: "rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_TIMESTAMP(milliseconds), ...)", key: "rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_KEY(key, size), ...)" },
  { name: "kafka-python", guide: "kafka-python", software: /^kafka-python/, clientId: /^kafka-python/,
    timestamp: "producer.send(topic, value, key, timestamp_ms=time.time_ns() // 1_000_000)", key: "producer.send(topic, value, key)" },
  { name: "aiokafka", guide: "aiokafka", software: /^aiokafka/, clientId: /^aiokafka/,
    timestamp: "await producer.send(topic, value, key, timestamp_ms=time.time_ns() // 1_000_000)", key: "await producer.send(topic, value, key)" },
  { name: "franz-go", guide: "franz-go", software: /^kgo/, clientId: /^kgo/,
    timestamp: "kgo.Record{Topic: topic, Key: key, Value: value, Timestamp: time.Now()}", key: "kgo.Record{Topic: topic, Key: key, Value: value}" },
  { name: "sarama", guide: "sarama", software: /^sarama/, clientId: /^sarama/,
    timestamp: "sarama.ProducerMessage{Topic: topic, Key: key, Value: value, Timestamp: time.Now()}", key: "sarama.ProducerMessage{Topic: topic, Key: key, Value: value}" },
  { name: "kafkajs", guide: "kafkajs", software: /^kafkajs/, clientId: /^kafkajs/,
    timestamp: "producer.send({topic, messages: [{key, value, timestamp: String(Date.now())}]})", key: "producer.send({topic, messages: [{key, value}]})" },
];

// Returns the library of a client from what the client reports, or null if it is unknown.
export function libraryOf(software, clientId) {
  return LIBRARIES.find((one) => software && one.software.test(software)) ?? LIBRARIES.find((one) => !software && clientId && one.clientId?.test(clientId)) ?? null;
}

const KINDS = [
  { kind: "timestamp", title: "Timestamps", reason: /timestamp/, advice: "Pass the timestamp in milliseconds since 1970-01-01T00:00:00Z, or none: the client then sets the time of sending." },
  { kind: "key", title: "Keys", reason: /key/, advice: "Give each record a key: the topic is compacted, which keeps the newest record of each key." },
];

const GUIDE = "https://docs.example.com/OWNER/clients-guide.html";

// Links to the page about client libraries, and to the library's own section if there is one.
const guide = (library) => html`<a href=${library?.guide ? `${GUIDE}#${library.guide}` : GUIDE} rel="noreferrer">Client guide${library?.guide && `: ${library.name}`}</a>`;

const docs = (kinds, library) => html`<p class="quiet">Documentation: ${guide(library)}, ${kinds.some((one) => one.kind === "timestamp") ? html`<code>docs/how-to/my-producer-gets-invalid-timestamp.md</code> and ` : ""}<code>docs/policies.md</code></p>`;

function calls(kind, libraries) {
  return html`<div key=${kind.kind}><p>${kind.advice}</p>
    <dl class="facts">${libraries.map((each) => html`<div key=${each.name}><dt>${each.name}</dt><dd><code>${each[kind.kind]}</code></dd></div>`)}</dl></div>`;
}

// The view has a URL for each library, which can be sent to the developers of a producer.
export function Fixes({ route }) {
  const name = route.params.get("library");
  const libraries = LIBRARIES.filter((one) => name === null || one.name === name);
  return html`<${Section} id="fixes-section" title="Fixes in code">
    <form class="filters" onSubmit=${(event) => event.preventDefault()}><${Choice} route=${route} name="library" label="Client library" options=${LIBRARIES.map((one) => one.name)} /></form>
    ${libraries.length === 0 ? html`<p>This page has no fix for this library.</p>` : KINDS.map((one) => html`<h3 key=${one.kind}>${one.title}</h3>${calls(one, libraries)}`)}
    ${docs(KINDS, libraries.length === 1 ? libraries[0] : null)}
  <//>`;
}

export function Fix({ library, reasons, topic }) {
  const kinds = KINDS.filter((one) => reasons.some((reason) => one.reason.test(reason)));
  const shown = library === null ? LIBRARIES : [library];
  return html`<div class="fix" id="fix">
    <h3>${library === null ? "Fix in code" : `Fix in code: ${library.name}`}</h3>
    ${kinds.length === 0 && html`<p>Compare the record with the policy of the topic.</p>`}
    ${kinds.map((one) => calls(one, shown))}
    <p><a href=${href("fixes", { library: library?.name })}>Link to ${library === null ? "all fixes" : `the fixes for ${library.name}`}</a>, <a href=${href("policy", { topic })}>policy of the topic</a></p>
    ${docs(kinds, library)}
  </div>`;
}
