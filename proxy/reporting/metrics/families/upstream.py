"""The brokers behind the proxy, the schema registries beside it, and the rules process."""

from sluicegate.proxy.reporting.metrics.family import Family, counter, gauge

UPSTREAM: tuple[Family, ...] = (
    gauge(
        "sluicegate_ready",
        "1 when an upstream broker answers.",
        "0: nobody can be served. `/readyz` says why.",
        lambda s: int(s.tally.ready),
    ),
    gauge(
        "sluicegate_upstream_connections",
        "Connections to brokers, by the listener that leads there and by state, as a look about once a second saw "
        "them: `connecting` (wanted, and not there yet) or `open`.",
        "`connecting` that stays above 0: that broker takes no connection.",
        lambda s: s.gauges.upstream,
        ("broker", "state"),
    ),
    counter(
        "sluicegate_upstream_failures",
        "Client connections for which no upstream broker could be reached.",
        "Any rise: brokers are down, or `upstream` names them wrongly; the log has which.",
        lambda s: s.tally.upstream_failures,
    ),
    counter(
        "sluicegate_cluster_probes",
        "How often each process looked at the cluster, and whether a broker answered.",
        "Against `sluicegate_ready`: whether an outage was short.",
        lambda s: s.tally.cluster_probes,
        ("result",),
        ("success", "failure"),
    ),
    counter(
        "sluicegate_upstream_logins_rejected",
        "Logins with upstream.sasl that a broker rejected.",
        "Any rise: the proxy's own password is wrong or was changed. Clients are still served.",
        lambda s: s.tally.upstream_logins_rejected,
    ),
    counter(
        "sluicegate_registry_failures",
        "Questions to a schema registry that had no answer, by the registry's name in the file.",
        "Any rise: it is gone, slow, or rejects the login; the log says which. What is known already goes on; of what "
        "is new `on_outage` decides.",
        lambda s: s.tally.registry_failures,
        ("registry",),
    ),
    counter(
        "sluicegate_registry_backoffs",
        "How often a schema registry had failed three times in a row, since when it is asked more and more seldom.",
        "As above. It is asked again every fifteen seconds at the latest, by itself.",
        lambda s: s.tally.registry_backoffs,
        ("registry",),
    ),
    counter(
        "sluicegate_rule_evaluations",
        "Evaluations of rules, and compilations of schemas, in the rules process, by how they ended.",
        "`limits.rule_cpu_seconds`, `limits.rule_memory_bytes`: a client sends records, or names schemas, that are too "
        "costly to validate; they are rejected, and the log has the client. `outage`: the process ended or did not "
        "respond; `on_outage` of the rule decides. `done` at a high rate: a rule or a schema that could be cheaper.",
        lambda s: s.tally.rule_evaluations,
        ("outcome",),
        ("done", "limits.rule_cpu_seconds", "limits.rule_memory_bytes", "outage"),
    ),
    counter(
        "sluicegate_rules_process_restarts",
        "How often the rules process ended by itself or by the system, and was started again; not because of a limit.",
        "Any rise: the system had no memory left, or a library has a bug; the log says which signal it was.",
        lambda s: s.tally.rules_process_restarts,
    ),
)
