// Sends one record with a timestamp; prints "ok" or its error. Arguments: servers, topic, timestamp, and as JSON
// { token } for an OAUTHBEARER login, or { ca, cert, key } with the names of PEM files for TLS.
const { readFileSync } = require("node:fs");
const { Kafka, logLevel } = require("kafkajs");

const [bootstrap, topic, timestamp, more] = process.argv.slice(2);
const { token, ...files } = JSON.parse(more);
const sasl = token && { mechanism: "oauthbearer", oauthBearerProvider: async () => ({ value: token }) };
const ssl = files.ca && Object.fromEntries(Object.entries(files).map(([name, file]) => [name, readFileSync(file)]));
const kafka = new Kafka({ brokers: [bootstrap], sasl, ssl, logLevel: logLevel.NOTHING, retry: { retries: 0 } });
const producer = kafka.producer();

(async () => {
  await producer.connect();
  try {
    await producer.send({ topic, messages: [{ value: "v", timestamp }] });
    console.log("ok");
  } catch (error) {
    console.log(error.type ?? error.message);
  }
  await producer.disconnect();
})();
