"""Declares the metrics about brokers, schema registries and the rules process."""

from sluicegate.proxy.reporting.metrics.family import Family, counter, gauge

UPSTREAM: tuple[Family, ...] = (
    gauge(
        "sluicegate_ready",
        "1 if the proxy can serve clients (`/readyz` returns 200), otherwise 0.",
        "If it is 0, `/readyz` gives the reason.",
        lambda s: int(s.counters.ready),
    ),
    gauge(
        "sluicegate_upstream_connections",
        "Connections to brokers, by broker and state (`connecting` or `open`), sampled about once a second.",
        "If `connecting` stays above 0, the broker accepts no connections.",
        lambda s: s.gauges.upstream,
        ("broker", "state"),
    ),
    gauge(
        "sluicegate_clock_offset_seconds",
        "The time by which the clock of the proxy's machine is ahead of the clock of the cluster's active controller "
        "(negative if it is behind). Absent if it is not measured.",
        "Beyond 10 s the condition `clock_offset` is active. The metric is absent if no broker responds, if "
        "`upstream.sasl` may not describe the cluster, or if the cluster is older than Kafka 3.3.",
        lambda s: {} if s.clock_offset_seconds is None else {(): s.clock_offset_seconds},
    ),
    counter(
        "sluicegate_upstream_failures",
        "Client connections that failed because the broker was unreachable.",
        "Should not increase. Brokers are down, or `upstream` has wrong addresses; the log names the broker.",
        lambda s: s.counters.upstream_failures,
    ),
    counter(
        "sluicegate_broker_errors",
        "Responses of brokers with an error, by API, error and client id. Each code counts once for a response. "
        "Counted: "
        "the code for a whole response of any API, and those of topics in Metadata, of coordinators in "
        "FindCoordinator, and of partitions in Produce, Fetch, ListOffsets, OffsetCommit and TxnOffsetCommit. Of a "
        "response that is larger than the read buffer, the first 4 KiB are read; Metadata is read up to 256 KiB. Not "
        "counted: codes within other responses, such as those of topics in CreateTopics. Bounded: "
        "100 client ids, 1000 series for each process; the others count as `other`.",
        "`TOPIC_AUTHORIZATION_FAILED`, `GROUP_AUTHORIZATION_FAILED`, `CLUSTER_AUTHORIZATION_FAILED`: an ACL is "
        "missing. `UNKNOWN_TOPIC_OR_PARTITION`: a topic does not exist. `UNSUPPORTED_SASL_MECHANISM`, "
        "`SASL_AUTHENTICATION_FAILED`: a wrong mechanism or password. `REBALANCE_IN_PROGRESS`, `MEMBER_ID_REQUIRED` "
        "and `NOT_LEADER_OR_FOLLOWER` are ordinary while they last for seconds.",
        lambda s: s.counters.broker_errors,
        ("api", "error", "client_id"),
    ),
    counter(
        "sluicegate_cluster_probes",
        "Probes of the cluster by each process, by result.",
        "Shows, with `sluicegate_ready`, the length of an outage.",
        lambda s: s.counters.cluster_probes,
        ("result",),
        ("success", "failure"),
    ),
    counter(
        "sluicegate_upstream_logins_rejected",
        "Proxy logins (upstream.sasl) that a broker rejected.",
        "Should not increase. The proxy's password is wrong or was changed. Clients are still served.",
        lambda s: s.counters.upstream_logins_rejected,
    ),
    counter(
        "sluicegate_registry_failures",
        "Failed requests to a schema registry, by the registry's name in the configuration.",
        "Should not increase. The registry is down, slow, or rejects the login; the log gives the reason. Cached "
        "schemas stay in use; for new ones `on_outage` applies.",
        lambda s: s.counters.registry_failures,
        ("registry",),
    ),
    counter(
        "sluicegate_encrypted_records",
        "Records whose key or value was encrypted by the serializer according to the rules of the schema, by registry "
        "and part: `whole` (no part was validated) or `fields` (everything except these fields was validated).",
        "Shows how many stored records could not be validated.",
        lambda s: s.counters.encrypted_records,
        ("registry", "part"),
    ),
    counter(
        "sluicegate_registry_backoffs",
        "The number of times requests to a schema registry began to back off after three consecutive failures.",
        "Should not increase. The registry fails repeatedly; the proxy retries at least every 15 s.",
        lambda s: s.counters.registry_backoffs,
        ("registry",),
    ),
    counter(
        "sluicegate_rule_evaluations",
        "Evaluations of rules and compilations of schemas in the rules process, by outcome.",
        "`limits.rule_cpu_seconds`, `limits.rule_memory_bytes`: a client sends records, or names schemas, that are too "
        "costly to validate; they are rejected, and the log shows the client. `outage`: the process ended or did not "
        "respond; `on_outage` of the rule decides. A high rate of `done` means that a rule or a schema could be "
        "cheaper.",
        lambda s: s.counters.rule_evaluations,
        ("outcome",),
        ("done", "limits.rule_cpu_seconds", "limits.rule_memory_bytes", "outage"),
    ),
    counter(
        "sluicegate_rules_process_restarts",
        "Restarts of the rules process without an exceeded limit, including restarts of an idle process.",
        "Should not increase. The system ran out of memory, or a library has a bug; the log shows the signal.",
        lambda s: s.counters.rules_process_restarts,
    ),
)
