"""The brokers behind the proxy, and the schema registries beside it."""

from sluicegate.proxy.reporting.family import Family, counter, gauge

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
        lambda s: s.standing.upstream,
        ("broker", "state"),
    ),
    counter(
        "sluicegate_upstream_failures",
        "Client connections for which no upstream broker could be reached.",
        "Any rise: brokers are down, or `upstream` names them wrongly; the log has which.",
        lambda s: s.tally.upstream_failures,
    ),
    counter(
        "sluicegate_cluster_looks",
        "How often each process looked at the cluster, and whether a broker answered.",
        "Against `sluicegate_ready`: whether an outage was short.",
        lambda s: s.tally.cluster_looks,
        ("result",),
        ("answered", "silent"),
    ),
    counter(
        "sluicegate_own_logins_refused",
        "Logins with upstream.sasl that a broker refused.",
        "Any rise: the proxy's own password is wrong or was changed. Clients are still served.",
        lambda s: s.tally.own_logins_refused,
    ),
    counter(
        "sluicegate_registry_failures",
        "Questions to a schema registry that had no answer, by the registry's name in the file.",
        "Any rise: it is gone, slow, or refuses the login; the log says which. What is known already goes on; of what "
        "is new `on.outage` decides.",
        lambda s: s.tally.registry_failures,
        ("registry",),
    ),
    counter(
        "sluicegate_registry_left_alone",
        "How often a schema registry had failed three times in a row, since when it is asked more and more seldom.",
        "As above. It is asked again every fifteen seconds at the latest, by itself.",
        lambda s: s.tally.registry_left_alone,
        ("registry",),
    ),
)
