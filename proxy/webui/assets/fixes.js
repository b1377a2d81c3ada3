// How to correct a producer, by client library (docs/how-to/my-producer-gets-invalid-timestamp.md has the same lines).

import { html } from "./html.js";

// The software name that a library reports, or the beginning of its default client id; and the correct call.
const LIBRARIES = [
  { name: "Java kafka-clients", software: /^apache-kafka-java/, clientId: /^producer-\d+$/,
    timestamp: "new ProducerRecord<>(topic, null, Instant.now().toEpochMilli(), key, value)", key: "new ProducerRecord<>(topic, key, value)" },
  { name: "confluent-kafka-python", software: /^confluent-kafka-python/, clientId: null,
    timestamp: "producer.produce(topic, value, key, timestamp=time.time_ns() // 1_000_000)", key: "producer.produce(topic, value, key)" },
  { name: "confluent-kafka-go", software: /^confluent-kafka-go/, clientId: null,
    timestamp: "kafka.Message{TopicPartition: tp, Key: key, Value: value, Timestamp: time.Now()}", key: "kafka.Message{TopicPartition: tp, Key: key, Value: value}" },
  { name: "confluent-kafka-dotnet", software: /^confluent-kafka-dotnet/, clientId: null,
    timestamp: "new Message<K, V> { Key = key, Value = value, Timestamp = new Timestamp(DateTimeOffset.UtcNow) }", key: "new Message<K, V> { Key = key, Value = value }" },
  { name: "librdkafka", software: /rdkafka/, clientId: /^rdkafka/,
    timestamp: "rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_TIMESTAMP(milliseconds), ...)", key: "rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_KEY(key, size), ...)" },
  { name: "kafka-python", software: /^kafka-python/, clientId: /^kafka-python/,
    timestamp: "producer.send(topic, value, key, timestamp_ms=time.time_ns() // 1_000_000)", key: "producer.send(topic, value, key)" },
  { name: "aiokafka", software: /^aiokafka/, clientId: /^aiokafka/,
    timestamp: "await producer.send(topic, value, key, timestamp_ms=time.time_ns() // 1_000_000)", key: "await producer.send(topic, value, key)" },
  { name: "franz-go", software: /^kgo/, clientId: /^kgo/,
    timestamp: "kgo.Record{Topic: topic, Key: key, Value: value, Timestamp: time.Now()}", key: "kgo.Record{Topic: topic, Key: key, Value: value}" },
  { name: "sarama", software: /^sarama/, clientId: /^sarama/,
    timestamp: "sarama.ProducerMessage{Topic: topic, Key: key, Value: value, Timestamp: time.Now()}", key: "sarama.ProducerMessage{Topic: topic, Key: key, Value: value}" },
  { name: "kafkajs", software: /^kafkajs/, clientId: /^kafkajs/,
    timestamp: "producer.send({topic, messages: [{key, value, timestamp: String(Date.now())}]})", key: "producer.send({topic, messages: [{key, value}]})" },
];

// The library of a client by what it reports; null if unknown.
export function libraryOf(software, clientId) {
  return LIBRARIES.find((one) => software && one.software.test(software)) ?? LIBRARIES.find((one) => !software && clientId && one.clientId?.test(clientId)) ?? null;
}

const KINDS = [
  { kind: "timestamp", reason: /timestamp/, advice: "Pass the timestamp in milliseconds since 1970-01-01T00:00:00Z, or none: the client then sets the time of sending." },
  { kind: "key", reason: /key/, advice: "Give each record a key: the topic is compacted, which keeps the newest record of each key." },
];

export function Fix({ library, reasons }) {
  const kinds = KINDS.filter((one) => reasons.some((reason) => one.reason.test(reason)));
  const shown = library === null ? LIBRARIES : [library];
  return html`<div class="fix" id="fix">
    <h3>${library === null ? "Fix in code" : `Fix in code: ${library.name}`}</h3>
    ${kinds.length === 0 && html`<p>Compare the record with the policy of the topic.</p>`}
    ${kinds.map((one) => html`<div key=${one.kind}><p>${one.advice}</p>
      <dl class="facts">${shown.map((each) => html`<div key=${each.name}><dt>${each.name}</dt><dd><code>${each[one.kind]}</code></dd></div>`)}</dl></div>`)}
    <p class="quiet">Documentation: ${kinds.some((one) => one.kind === "timestamp") ? html`<code>docs/how-to/my-producer-gets-invalid-timestamp.md</code> and ` : ""}<code>docs/policies.md</code></p>
  </div>`;
}
