"""How long requests take."""

from sluicegate.proxy.reporting.metrics.family import Family, histogram

_SAMPLED = (
    "Of what takes the fast lane one of 128 of an API is timed, and counts for 128 (on each worker); of all else every "
    "one."
)

TIME: tuple[Family, ...] = (
    histogram(
        "sluicegate_request_proxy_seconds",
        "From when a request had come whole until it was sent on, or answered by the proxy. Requests that pass while "
        f"they come have no such time. {_SAMPLED}",
        "What the proxy adds. What waits for topic settings, a schema registry or the judging thread is seen here.",
        lambda s: s.tally.proxy_seconds,
        ("api",),
    ),
    histogram(
        "sluicegate_request_upstream_seconds",
        "From when a request was sent on until its broker's answer began to arrive, the wait behind earlier requests "
        f"of its connection included. {_SAMPLED}",
        "When producers are slow: whether it is the brokers. Fetch waits on purpose, up to fetch.max.wait.ms.",
        lambda s: s.tally.upstream_seconds,
        ("api",),
    ),
    histogram(
        "sluicegate_event_loop_delay_seconds",
        "How much later than asked the event loop came back, looked at four times a second on each worker.",
        "When all clients are slow at once: above 0.05 the process has more to do than one core can.",
        lambda s: s.tally.loop_delay,
    ),
)
