"""What each section and key is for, in the words of docs/configuration.md."""

SECTIONS = {
    "": "Of the process as a whole.",
    "upstream": "The cluster behind the proxy.",
    "upstream.tls": "TLS to the brokers; `tls: {}` trusts the system's CAs. Absent: plaintext.",
    "upstream.sasl": "The proxy's own login, for what it asks the cluster itself; clients log in with their own. It "
    "needs to describe the cluster and, for `topic_settings`, topics' configurations (`DescribeConfigs`).",
    "listen": "Where clients connect.",
    "listen.tls": "TLS to clients. Files that change are read again. Absent: plaintext.",
    "admin": "The admin endpoint.",
    "defaults": "What holds where an entry of `topics` does not say otherwise. Values that are named `none` here are "
    "those of a broker: CreateTime, 9223372036854775807 twice, delete, the broker's `max.message.bytes`; and "
    "`all`, `reject`.",
    "topics[]": "The first entry whose pattern matches a topic's whole name decides; what it leaves open comes from "
    "`defaults`.",
    "topics[].rehearse": "Bounds that are not in force: how many records and batches each of them would refuse is "
    "counted ([policies](policies.md)).",
    "topics[].fix": "What is put right instead of refused, where the whole batch is understood "
    "([policies](policies.md)).",
    "topics[].rules[]": "What is asked of records beyond what a broker asks ([policies](policies.md)), in this order. "
    "An entry's list stands in the place of that in `defaults`.",
    "topics[].rules[].key": "Of a record's key.",
    "topics[].rules[].value": "Of a record's value.",
    "topics[].rules[].headers": "Of a record's headers.",
    "topics[].rules[].batch": "Of a batch as a whole.",
    "topics[].rules[].time": "Of records' times. Only with `mode: observe`.",
    "topics[].rules[].key.json": "The key is one JSON text and nothing else; `json: {}` has the defaults.",
    "topics[].rules[].key.schema": "The key follows a schema.",
    "topics[].rules[].value.json": "The value is one JSON text and nothing else; `json: {}` has the defaults.",
    "topics[].rules[].value.schema": "The value follows a schema.",
    "registries.*": "A schema registry, by a name that rules use.",
    "registries.*.tls": "TLS to the registry. Absent: the system's CAs.",
    "requests[]": "What is asked of Produce requests and of who sends them ([policies](policies.md)). All that concern "
    "a batch are asked.",
    "requests[].match": "Which batches a rule concerns: all that are given must match.",
    "requests[].software[]": "Client libraries by the name and version that they give themselves (ApiVersions). Who "
    "has given none is not asked.",
    "exempt[]": "Clients that are asked nothing: no rule, no bound, no check of ours; the broker's own hold "
    "([policies](policies.md)).",
    "quotas[]": "How much each client may send with Produce, and on how many connections, or how much each topic may "
    "be sent ([quotas](quotas.md)). The first that is about a client holds, and the first that is about a topic.",
    "violations": "[Violation events](violations.md), one JSON object for each refused partition.",
    "otel": "[OpenTelemetry](how-to/opentelemetry.md): metrics and traces by OTLP over HTTP. Needs `pip install "
    "'sluicegate[otel]'`. Absent: none.",
    "otel.tls": "TLS to the receiver. Absent: the system's CAs.",
    "limits": "What any client can make the proxy hold or do. What goes beyond is refused, with the key's name.",
    "log": "Log lines.",
}

KEYS = {
    "topics_from": "further files with entries of `topics`, names or globs, as `policies/*.yaml`, relative to this "
    "file; they stand behind its own, file by file in the order of their names "
    "([policy files](policy-files.md))",
    "on.internal.error": "what becomes of a Produce request that cannot be judged because sluicegate itself fails: its "
    "connection is closed (`close`), or it is forwarded as it came, and told (`forward`)",
    "drain_seconds": "after SIGTERM: accept nothing, let what is in flight finish, at most this long",
    "workers": "processes that share the ports and the work (SO_REUSEPORT), one admin endpoint, metrics summed; one "
    "that dies is started again and counted (`sluicegate_worker_restarts_total`)",
    "upstream.bootstrap": "brokers to start from; each client begins with another one, and beside one that says "
    "nothing the next is tried half a second later",
    "upstream.brokers": "addresses by node id, for clusters that tell them only after a login; else they are learnt",
    "upstream.topic_settings": "read each topic's settings from the cluster, when it is first written to and every "
    "`refresh_seconds`; the stricter of cluster and file wins, and where the cluster tells none, the file holds",
    "upstream.connect_timeout_seconds": "patience with one address",
    "upstream.refresh_seconds": "how often the proxy looks at the cluster",
    "upstream.tls.ca_file": "whom to trust, PEM; none: the system's CAs",
    "upstream.tls.certificate_file": "the proxy's own certificate and its chain, PEM, for brokers that want one",
    "upstream.tls.key_file": "its key, PEM",
    "upstream.tls.key_password": "what the key is encrypted with",
    "upstream.tls.key_password_file": "a file that holds it, instead",
    "upstream.tls.verify_hostname": "whether a broker's certificate must name its host",
    "upstream.sasl.mechanism": "how to log in",
    "upstream.sasl.username": "as whom",
    "upstream.sasl.password": "with what; this or `password_file` is needed",
    "upstream.sasl.password_file": "a file that holds it, instead",
    "listen.bootstrap": "where clients bootstrap; an empty host or `0.0.0.0` is every address of the machine",
    "listen.broker_ports": "broker N listens at this + N, so that a restart keeps every port; none: the "
    "bootstrap port + 1",
    "listen.broker_host": "with TLS, instead of a port for each broker: one port, and a name for each, as "
    "`broker-{node_id}.kafka.example.com` (SNI); for node ids up to 999,999,999",
    "listen.advertised_host": "the host that clients are told, without a port; none: that of `listen.bootstrap`",
    "listen.proxy_protocol": "take who the client is from load balancers in front (PROXY protocol v2): `required` of "
    "all connections, or `optional`; none: nobody is believed",
    "listen.proxy_protocol_from": "the load balancers' networks or addresses; with `required` nobody else may connect, "
    "with `optional` nobody else is believed",
    "listen.allowed_addresses": "networks or addresses that clients may connect from, before any TLS handshake; where "
    "a load balancer tells who the client is, that address counts; none: all",
    "listen.tls.certificate_file": "the certificate that clients see and its chain, PEM",
    "listen.tls.key_file": "its key, PEM",
    "listen.tls.key_password": "what the key is encrypted with",
    "listen.tls.key_password_file": "a file that holds it, instead",
    "listen.tls.client_auth": "whether clients show certificates, as `ssl.client.auth` on a broker",
    "listen.tls.client_ca_file": "who signs clients' certificates, PEM; needed unless `client_auth` is `none`",
    "listen.sasl.oauthbearer.claim": "the claim of an OAUTHBEARER token that the brokers take the principal "
    "from, as their `sasl.oauthbearer.sub.claim.name`, which is `sub` by default; none: principals of such logins are "
    "unverified, and no exemption matches them ([TLS and SASL](how-to/tls-and-sasl.md))",
    "listen.tls.allowed_names": "who may connect, by one of its certificate's names: the common name, and the "
    "alternative names (hosts, mail addresses, URIs, addresses), upper and lower case as they stand; needs "
    "`client_auth: required`; none: who has a certificate",
    "admin.listen": "where `/metrics`, `/livez`, `/readyz` and the [page](page.md) are; none: nowhere",
    "admin.page": "whether there is a page at `/`; without a token only on a loopback address",
    "admin.token": "what who looks at the page has to know; `/metrics`, `/livez` and `/readyz` are answered without it",
    "admin.token_file": "a file that holds it, instead; read again each time",
    "topics[].message.timestamp.type": "who sets a record's time",
    "topics[].message.timestamp.before.max.ms": "how far a record's time may lie behind now (KIP-937)",
    "topics[].message.timestamp.after.max.ms": "how far a record's time may lie ahead of now (KIP-937)",
    "topics[].message.timestamp.difference.max.ms": "deprecated: stands for each of the two that is not set, with a "
    "warning",
    "topics[].cleanup.policy": "`compact`, `delete` or `compact,delete`; records of a compacted topic need a key",
    "topics[].max.message.bytes": "the largest batch",
    "topics[].checks": "`none` forwards a topic's batches unjudged",
    "topics[].mode": "what becomes of a batch that is refused: `reject` answers as a broker would, `observe` forwards "
    "it as it came and only says so ([policies](policies.md))",
    "topics[].framing": "what becomes of batches that brokers store and consumers read otherwise: `safe` rejects those "
    "of which clients would read other records than were validated, and reports those that some clients cannot read; "
    "`strict` rejects both; `broker` looks for neither ([framing](framing.md))",
    "topics[].rehearse.message.timestamp.before.max.ms": "bounds for how far a record's time may lie behind now",
    "topics[].rehearse.message.timestamp.after.max.ms": "bounds for how far a record's time may lie ahead of now",
    "topics[].fix.timestamp": "what a time that breaks a bound becomes: `now`, the nearest that keeps it (`clamp`), "
    "the latest good one of its partition (`previous`), or itself in milliseconds where it is plausible in seconds, "
    "micro- or nanoseconds (`unit`: bounds are ten years at most then)",
    "topics[].quarantine": "a topic that the bad records of refused batches are written to before the batch is "
    "answered ([policies](policies.md)); excludes `mode: observe` and `fix`. Needs `pip install 'sluicegate[topic]'`",
    "topics[].samples": "`true`: violation events show the beginning of bad records' keys and values, at most 256 "
    "bytes each ([policies](policies.md)); else nothing of them",
    "topics[].match": "a glob, in which only `*`, `?` and `[…]` are special (a dot is a dot), or a regular expression "
    "between slashes, in RE2's syntax",
    "topics[].rules[].name": "what answers, events, log lines and metrics call it",
    "topics[].rules[].mode": "what becomes of a batch that breaks it: `reject`, or `observe`, which only tells it",
    "topics[].rules[].on.outage": "what becomes of a batch while something that the rule depends on does not answer: "
    "refused with an error upon which producers try again (`retriable`), forwarded (`forward`), or refused for good "
    "(`reject`)",
    "topics[].rules[].on.schema.error": "what becomes of a record whose schema exists and cannot be compiled or "
    "applied: the record is rejected for good (`reject`), or its batch is rejected with an error upon which producers "
    "try again (`retriable`), or forwarded (`forward`)",
    "topics[].rules[].key.required": "`true`: it may not be null",
    "topics[].rules[].key.min_size": "least size; 1: it may not be empty",
    "topics[].rules[].key.max_size": "greatest size",
    "topics[].rules[].key.utf8": "`true`: it must be text in UTF-8",
    "topics[].rules[].value.required": "`true`: it may not be null",
    "topics[].rules[].value.min_size": "least size; 1: it may not be empty",
    "topics[].rules[].value.max_size": "greatest size",
    "topics[].rules[].value.utf8": "`true`: it must be text in UTF-8",
    "topics[].rules[].headers.required": "names of headers that every record must have",
    "topics[].rules[].headers.forbidden": "names of headers that no record may have",
    "topics[].rules[].headers.matched": "what the whole value of headers must match, in UTF-8, where they are there: a "
    "glob, or a regular expression between slashes, in RE2's syntax",
    "topics[].rules[].headers.max_count": "how many headers a record may have",
    "topics[].rules[].headers.max_size": "how large a record's headers may be, names and values together",
    "topics[].rules[].batch.max_records": "how many records a batch may have",
    "topics[].rules[].time.monotonic": "`true`: times do not go back, for each producer and partition",
    "topics[].rules[].key.json.duplicate_keys": "whether an object may have a key twice",
    "topics[].rules[].key.json.max_depth": "how many objects and arrays may lie within each other",
    "topics[].rules[].key.schema.file": "a file with the schema; this or `registry`",
    "topics[].rules[].key.schema.registry": "one of `registries`: the record names its schema",
    "topics[].rules[].key.schema.format": "the schema's language; beside `registry`: the only one that is taken",
    "topics[].rules[].key.schema.envelope": "beside `file`: what stands before the data, nothing or `confluent`, a "
    "zero byte and an id",
    "topics[].rules[].key.schema.message": "beside a Protobuf file: the full name of the message",
    "topics[].rules[].key.schema.subject": "beside `registry`: under which subject the schema must be registered; "
    "none: `topic`",
    "topics[].rules[].value.json.duplicate_keys": "whether an object may have a key twice",
    "topics[].rules[].value.json.max_depth": "how many objects and arrays may lie within each other",
    "topics[].rules[].value.schema.file": "a file with the schema; this or `registry`",
    "topics[].rules[].value.schema.registry": "one of `registries`: the record names its schema",
    "topics[].rules[].value.schema.format": "the schema's language; beside `registry`: the only one that is taken",
    "topics[].rules[].value.schema.envelope": "beside `file`: what stands before the data, nothing or `confluent`, "
    "a zero byte and an id",
    "topics[].rules[].value.schema.message": "beside a Protobuf file: the full name of the message",
    "topics[].rules[].value.schema.subject": "beside `registry`: under which subject the schema must be registered; "
    "none: `topic`",
    "topics[].rules[].cel": "an expression of CEL that must be true",
    "topics[].rules[].entry_point": "a rule of your own: the name of an installed entry point of the group "
    "`sluicegate.rules`",
    "topics[].rules[].options": "what it is made with; values are text",
    "registries.*.url": "where its Confluent API is, as `https://registry.internal:8081`",
    "registries.*.username": "whom to log in as (HTTP basic)",
    "registries.*.password": "with what",
    "registries.*.password_file": "a file that holds it, instead",
    "registries.*.tls.ca_file": "whom to trust, PEM; none: the system's CAs",
    "registries.*.tls.certificate_file": "the proxy's own certificate and its chain, PEM",
    "registries.*.tls.key_file": "its key, PEM",
    "registries.*.tls.key_password": "what the key is encrypted with",
    "registries.*.tls.key_password_file": "a file that holds it, instead",
    "registries.*.refresh_seconds": "how long a schema is taken to be under its subject; then it is asked again, "
    "and nobody waits",
    "requests[].name": "what answers, events, log lines and metrics call it",
    "requests[].mode": "what becomes of a batch whose request breaks it: `reject`, or `observe`, which only tells it",
    "requests[].match.topics": "a pattern of topics' names, as in `topics[].match`",
    "requests[].match.client_id": "a pattern of client ids",
    "requests[].match.principal": "a pattern of principals, as `User:*`",
    "requests[].acks": "which acks are taken",
    "requests[].codecs": "which codecs are taken",
    "requests[].idempotent": "`true`: producers must be idempotent",
    "requests[].client_id": "what the client id must match",
    "requests[].max_batch_bytes": "the largest batch, as it is sent",
    "requests[].software[].name": "a pattern of names, as `librdkafka` or `apache-kafka-java`",
    "requests[].software[].min_version": "the version from which on it is taken",
    "exempt[].principal": "a pattern of principals, as `User:mirror-maker`",
    "exempt[].client_id": "a pattern of client ids",
    "quotas[].name": "what metrics and log lines call it",
    "quotas[].client_id": "a pattern of client ids, each of which has a quota of its own",
    "quotas[].principal": "a pattern of principals, as `User:*`, each of which has one; with `client_id`: each pair",
    "quotas[].topic": "a pattern of topics' names, each of which has one; without the others",
    "quotas[].bytes_per_second": "of Produce requests; who sends more is made to wait",
    "quotas[].requests_per_second": "Produce requests; who sends more is made to wait",
    "quotas[].connections": "connections that send Produce requests; further ones are closed at the first",
    "violations.file": "where events go; none: log lines only. A relative path begins where the proxy was started, "
    "which must be writable: with a read-only root, a volume",
    "violations.topic": "a topic of the cluster that events go to, as well as or instead of the file; `upstream` says "
    "how it is reached. Needs `pip install 'sluicegate[topic]'`; none: no topic",
    "violations.max_file_bytes": "a file that has reached this is renamed to its name and `.1`, in the place of the "
    "one before",
    "violations.max_records": "bad records that are listed in each event",
    "violations.queue_size": "events that may wait to be written; further ones are dropped and counted",
    "otel.endpoint": "where the receiver is, as `http://collector.internal:4318`; `/v1/metrics` and `/v1/traces` are "
    "put behind it",
    "otel.headers": "what is sent with each request, as `authorization=Bearer%20secret,x-tenant=a`; never shown",
    "otel.headers_file": "a file that holds them, instead; read again each time",
    "otel.tls.ca_file": "whom to trust, PEM; none: the system's CAs",
    "otel.tls.certificate_file": "the proxy's own certificate and its chain, PEM",
    "otel.tls.key_file": "its key, PEM",
    "otel.tls.key_password": "what the key is encrypted with",
    "otel.tls.key_password_file": "a file that holds it, instead",
    "otel.service_name": "the resource's `service.name`",
    "otel.metrics": "`true`: the receiver gets what `/metrics` shows; of several workers together",
    "otel.metrics_every_seconds": "how often",
    "otel.traces_per_second": "spans a second, at most, of Produce requests in which something is wrong, and as many "
    "of those in which nothing is; 0: none",
    "otel.timeout_seconds": "timeout of one export, with its retries; no client waits for it",
    "limits.max_frame_bytes": "largest request or gathered answer",
    "limits.max_gathered_bytes": "all requests that are being gathered, of all connections together; at least "
    "`max_frame_bytes`",
    "limits.max_decompressed_bytes": "what the compressed batches of one request may become, all together",
    "limits.max_decompression_ratio": "how many times its size a compressed batch may become (above 1 MiB)",
    "limits.max_decompression_window_bytes": "what may have to be held at once to read a payload: a zstd window, a "
    "snappy block",
    "limits.max_request_partitions": "partitions in one Produce request",
    "limits.max_request_records": "records in one Produce request, as its batches say; none: any number that fits "
    "`max_frame_bytes` and `max_decompressed_bytes`",
    "limits.max_request_headers": "headers of all records of one Produce request that are judged; none: any number "
    "that fits the same",
    "limits.max_record_errors": "record errors that are listed in one answer, all partitions together",
    "limits.max_quarantined_bytes": "what bad records that are being quarantined may take, of all connections together",
    "limits.rule_seconds": "CPU time that the rules process may spend for the records of one Produce request, and for "
    "compiling one schema of a registry ([policies](policies.md#the-rules-process))",
    "limits.rule_memory": "memory of the rules process beyond what its libraries take; each worker has one such "
    "process, if its rules need one",
    "limits.max_in_flight": "requests of one connection without an answer",
    "limits.max_in_flight_in_all": "requests of all connections together without an answer, long polls included (each "
    "consumer has one); none: any number",
    "limits.max_connections": "connections of all clients; none: as many as the process may have descriptors for",
    "limits.max_connections_per_address": "connections from one address; none: no bound of its own",
    "limits.max_new_connections_per_second": "new connections a second, on all listeners together, and as many at once "
    "after a quiet time; who comes faster waits, as with `max.connection.creation.rate` of a broker; none: no bound",
    "limits.max_new_connections_per_second_per_address": "new connections a second from one address, and as many at "
    "once after a quiet time; what comes faster is closed; where a load balancer tells who the client is, that address "
    "counts; none: no bound",
    "limits.max_handshakes": "TLS handshakes and PROXY protocol headers that are under way at once (57 kB each)",
    "limits.handshake_seconds": "how long a TLS handshake, or a PROXY protocol header, may take",
    "limits.frame_seconds": "how long a request may take to arrive",
    "limits.idle_seconds": "how long a connection may say nothing",
    "log.format": "`auto` is pretty on a terminal, else JSON",
    "log.level": "from which level on lines are written; `debug` follows every connection: who it is, each request's "
    "API, version and size, each answer's codes, what holds it up, who ends it; never a payload or a secret",
    "log.client": "follow only the connections of this client id, whatever `log.level` says",
}
