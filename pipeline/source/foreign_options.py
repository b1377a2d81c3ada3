"""Lists options of Spark's own Kafka source and settings of Java's client that this source lacks, with replacements.

The options are those in Spark's `KafkaSourceProvider`, and the settings are those in Kafka's `ConsumerConfig`. A test
compares both lists with the installed classes.
"""

_NO_GROUP = "this source uses no consumer group and needs no ACL for one: omit it"
_NO_CACHE = "this source has no consumer to tune: omit it"
_RETRIES = (
    "this source retries failed requests for 30 s; omit it, or use kafka.socket.timeout.ms for the "
    "timeout of one request"
)
_TRIGGER = "set the trigger's interval instead (trigger(processingTime=...)), and omit it"
_RAW = "keys and values are read as bytes: omit it, and decode the columns"
_BOUNDS = "startingOffsets and the checkpoint determine where reading starts: omit it"
_PEM = "certificates must be PEM files"
_TIMEOUT = "use kafka.socket.timeout.ms"
_ENDPOINT = "kafka.sasl.oauthbearer.token.endpoint.url"
_BROKER = "only brokers validate tokens: omit it"

_OPTIONS = {
    "groupidprefix": _NO_GROUP,
    "kafkaconsumer.polltimeoutms": f"{_TIMEOUT} instead",
    "fetchoffset.numretries": _RETRIES,
    "fetchoffset.retryintervalms": _RETRIES,
    "minoffsetspertrigger": _TRIGGER,
    "maxtriggerdelay": _TRIGGER,
    "topic": "this source only reads; to write, use Spark's format kafka",
}
_CLIENT = {
    "group.id": _NO_GROUP,
    "group.instance.id": _NO_GROUP,
    "group.protocol": _NO_GROUP,
    "group.remote.assignor": _NO_GROUP,
    "enable.auto.commit": "Spark's checkpoint keeps the offsets: omit it",
    "auto.commit.interval.ms": "Spark's checkpoint keeps the offsets: omit it",
    "auto.offset.reset": _BOUNDS,
    "key.deserializer": _RAW,
    "value.deserializer": _RAW,
    "interceptor.classes": _RAW,
    "allow.auto.create.topics": "this source never creates a topic: omit it",
    "client.id": "the client id is sluicegate-spark: omit it",
    "sasl.jaas.config": "use kafka.sasl.username and kafka.sasl.password (PLAIN, SCRAM) or kafka.sasl.oauthbearer.*",
    "sasl.login.callback.handler.class": "use kafka.sasl.oauthbearer.*",
    "sasl.client.callback.handler.class": "use kafka.sasl.username and kafka.sasl.password",
    "sasl.oauthbearer.header.urlencode": "the client id and secret are sent unencoded, as by default in Java: omit it",
    "sasl.oauthbearer.client.credentials.client.id": "use kafka.sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "use kafka.sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.jwt.retriever.class": f"use {_ENDPOINT}",
    "sasl.oauthbearer.scope.claim.name": _BROKER,
    "sasl.oauthbearer.sub.claim.name": _BROKER,
    "sasl.oauthbearer.clock.skew.seconds": _BROKER,
    "sasl.oauthbearer.jwt.validator.class": _BROKER,
    "ssl.truststore.location": f"use kafka.ssl.ca.location; {_PEM}",
    "ssl.truststore.certificates": f"write them to a file and use kafka.ssl.ca.location; {_PEM}",
    "ssl.truststore.password": f"omit it; {_PEM} (kafka.ssl.ca.location)",
    "ssl.truststore.type": f"omit it; {_PEM} (kafka.ssl.ca.location)",
    "ssl.keystore.location": f"use kafka.ssl.certificate.location and kafka.ssl.key.location; {_PEM}",
    "ssl.keystore.certificate.chain": f"write it to a file and use kafka.ssl.certificate.location; {_PEM}",
    "ssl.keystore.key": f"write it to a file and use kafka.ssl.key.location; {_PEM}",
    "ssl.keystore.password": f"use kafka.ssl.key.password; {_PEM}",
    "ssl.keystore.type": f"omit it; {_PEM} (kafka.ssl.certificate.location)",
    "request.timeout.ms": _TIMEOUT,
    "default.api.timeout.ms": _TIMEOUT,
    "session.timeout.ms": _NO_GROUP,
    "heartbeat.interval.ms": _NO_GROUP,
    "max.poll.interval.ms": _NO_GROUP,
    "partition.assignment.strategy": _NO_GROUP,
    "max.poll.records": "use maxOffsetsPerTrigger to limit a batch, and minPartitions to limit a task",
}
_FAMILIES = {
    "sasl.kerberos.": "Kerberos (GSSAPI) is not supported: use another mechanism",
    "sasl.login.": f"tokens come from {_ENDPOINT} and are renewed before they expire: omit it",
    "sasl.oauthbearer.jwks.": _BROKER,
    "sasl.oauthbearer.expected.": _BROKER,
    "sasl.oauthbearer.assertion.": "use kafka.sasl.oauthbearer.client.id and kafka.sasl.oauthbearer.client.secret",
    "metadata.recovery.": _NO_CACHE,
    "metrics.": _NO_CACHE,
    "internal.": _NO_CACHE,
    "share.": _NO_GROUP,
}
"""Advice for all settings with the same prefix."""
_TUNING = (
    *("fetch.min.bytes", "fetch.max.bytes", "fetch.max.wait.ms", "max.partition.fetch.bytes", "check.crcs"),
    *("receive.buffer.bytes", "send.buffer.bytes", "connections.max.idle.ms", "metadata.max.age.ms"),
    *("reconnect.backoff.ms", "reconnect.backoff.max.ms", "retry.backoff.ms", "retry.backoff.max.ms"),
    *("socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms", "client.dns.lookup"),
    *("client.rack", "exclude.internal.topics", "metric.reporters", "auto.include.jmx.reporter"),
    *("enable.metrics.push", "security.providers"),
    *("ssl.protocol", "ssl.provider", "ssl.enabled.protocols", "ssl.cipher.suites", "ssl.keymanager.algorithm"),
    *("ssl.trustmanager.algorithm", "ssl.secure.random.implementation", "ssl.engine.factory.class"),
)


def advice_instead_of(name: str) -> str | None:
    """Return the replacement for an option, given its name in lower case.

    Returns None for an option that Spark's own source does not have either.
    """
    if name in _OPTIONS:
        return _OPTIONS[name]
    client = name.removeprefix("kafka.")
    if client == name:
        return None
    if client in _CLIENT:
        return _CLIENT[client]
    if client in _TUNING:
        return _NO_CACHE
    return next((advice for begins, advice in _FAMILIES.items() if client.startswith(begins)), None)
