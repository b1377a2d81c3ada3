// Sends one record with a timestamp after an OAUTHBEARER login with a given token; prints its result.
const { Kafka, logLevel } = require("kafkajs");

const [bootstrap, topic, timestamp, value] = process.argv.slice(2);
const sasl = { mechanism: "oauthbearer", oauthBearerProvider: async () => ({ value }) };
const producer = new Kafka({ brokers: [bootstrap], sasl, logLevel: logLevel.NOTHING, retry: { retries: 0 } }).producer();

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
