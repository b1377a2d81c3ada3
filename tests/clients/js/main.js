// kafkajs client of the matrix; tests/clients/programs.py describes the commands.
const { Kafka, CompressionTypes, logLevel } = require('kafkajs')

const [bootstrap, command, topic, count] = process.argv.slice(2)
const kafka = new Kafka({ clientId: 'kafkajs', brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 5 } })
const records = label => [...Array(10).keys()].map(i => ({ key: 'k', value: `${label} ${i}` }))

async function produce (settings, label, how) {
  const producer = kafka.producer(settings)
  await producer.connect()
  await producer.send({ topic, messages: records(label), ...how })
  await producer.disconnect()
}

async function consume () {
  const consumer = kafka.consumer({ groupId: `${topic}-group` })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  let left = Number(count)
  await new Promise(resolve => consumer.run({
    eachMessage: async ({ message }) => {
      console.log(message.value.toString())
      if (--left === 0) resolve()
    }
  }))
  await consumer.disconnect()
}

async function administer (act) {
  const admin = kafka.admin()
  await admin.connect()
  await act(admin)
  await admin.disconnect()
}

async function reject () {
  const producer = kafka.producer()
  await producer.connect()
  const now = Date.now()
  const times = [`${now}`, `${now}000000`, `${now}`]
  try {
    await producer.send({ topic, messages: times.map((timestamp, i) => ({ key: 'k', value: `${i}`, timestamp })) })
  } catch (error) {
    console.log(`${error.name} ${error.type || ''}: ${error.message}`)
  }
  await producer.disconnect()
}

const commands = {
  'produce-default': () => produce({}, 'default', {}),
  'produce-strict': () => produce({ idempotent: true, maxInFlightRequests: 1 }, 'strict', { acks: -1, compression: CompressionTypes.GZIP }),
  consume,
  topics: () => administer(async admin => console.log((await admin.listTopics()).join('\n'))),
  create: () => administer(admin => admin.createTopics({ topics: [{ topic, numPartitions: 2 }], waitForLeaders: true })),
  reject
}
commands[command]().catch(error => { console.error(error); process.exit(1) })
