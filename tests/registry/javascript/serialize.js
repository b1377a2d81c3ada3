// Serializes values with Confluent's serializers for JavaScript, which encrypt with their local key service, or with
// kafkajs's. Standard input has the cases, and the URL of a registry that has the schemas of kafkajs's cases by id:
//
//   {"registry": "http://...", "cases": [{"writer": "confluent", "id": 3, "language": "AVRO", "schema": "...", ...}]}
//
// The output is the list of records: {"value": base64, "headers": {name: base64}, "guid": "..."}.
const { createFileRegistry, fromBinary, fromJson } = require('@bufbuild/protobuf')
const { FileDescriptorSetSchema } = require('@bufbuild/protobuf/wkt')
const confluent = require('@confluentinc/schemaregistry')
const kafkajs = require('@kafkajs/confluent-schema-registry')

const SERIALIZERS = {
  AVRO: confluent.AvroSerializer,
  JSON: confluent.JsonSerializer,
  PROTOBUF: confluent.ProtobufSerializer
}

confluent.EncryptionExecutor.register()
confluent.FieldEncryptionExecutor.register()
confluent.LocalKmsDriver.register()

// Returns a client of a registry in memory that gives the case's schema its id.
async function clientOf (one) {
  const client = confluent.SchemaRegistryClient.newClient({ baseURLs: ['mock://'] })
  for (let id = 1; id < one.id; id++) await client.register(`other-${id}`, { schema: `"other${id}"`, schemaType: 'AVRO' })
  const schema = { schema: one.schema, schemaType: one.language, ...one.ruleSet && { ruleSet: one.ruleSet } }
  const registered = await client.registerFullResponse(`${one.topic}-value`, schema)
  if (registered.id !== one.id) throw new Error(`the schema has the id ${registered.id} instead of ${one.id}`)
  return [client, registered.guid]
}

async function writtenByConfluent (one) {
  const [client, guid] = await clientOf(one)
  const conf = { useLatestVersion: true, ruleConfig: { secret: 'local' } }
  if (one.inHeader) conf.schemaIdSerializer = confluent.HeaderSchemaIdSerializer
  let value = one.value
  if (one.language === 'PROTOBUF') {
    conf.registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, Buffer.from(one.descriptors, 'base64')))
    value = fromJson(conf.registry.getMessage(one.message), value)
  }
  const headers = {}
  const serializer = new SERIALIZERS[one.language](client, confluent.SerdeType.VALUE, conf)
  return { value: await serializer.serialize(one.topic, value, headers), headers, guid }
}

async function writtenByKafkajs (one, url) {
  const options = { [kafkajs.SchemaType.JSON]: { strict: false, validateFormats: false } } // tags are no keyword
  const registry = new kafkajs.SchemaRegistry({ host: url }, options)
  return { value: await registry.encode(one.id, one.value), headers: {} }
}

const base64 = bytes => Buffer.from(bytes).toString('base64')

async function main () {
  const chunks = []
  for await (const chunk of process.stdin) chunks.push(chunk)
  const { registry, cases } = JSON.parse(Buffer.concat(chunks).toString())
  const written = []
  for (const one of cases) {
    const { value, headers, guid } = await (one.writer === 'kafkajs' ? writtenByKafkajs(one, registry) : writtenByConfluent(one))
    const inBase64 = Object.fromEntries(Object.entries(headers).map(([name, bytes]) => [name, base64(bytes)]))
    written.push({ value: base64(value), headers: inBase64, guid: guid ?? '' })
  }
  console.log(JSON.stringify(written))
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
