"""What the proxy does with what producers send, and how long requests take."""

from sluicegate.proxy.reporting.metrics.batch_events import OUTCOMES
from sluicegate.proxy.reporting.metrics.family import Family, counter, histogram
from sluicegate.validation.fallback_reason import FallbackReason

_SAMPLED = (
    "Of what takes the fast path one of 128 of an API is timed, and counts for 128 (on each worker); of all else every "
    "one."
)

TIME: tuple[Family, ...] = (
    histogram(
        "sluicegate_request_proxy_seconds",
        "From when a request had come whole until it was sent on, or answered by the proxy. Requests that pass while "
        f"they come have no such time. {_SAMPLED}",
        "What the proxy adds. What waits for topic settings, a schema registry or the validating thread is seen here.",
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


_BY_OUTCOME = (
    "`forwarded` (good, or only observed), `fixed` (with other times), `rejected`, `quarantined` (rejected, and "
    "the bad "
    "records kept elsewhere)"
)
_PATHS = (("Produce", "fast"), ("Produce", "slow"))

FLOW: tuple[Family, ...] = (
    counter(
        "sluicegate_produce_requests",
        "Produce requests validated.",
        "The base of every share: how much is validated at all.",
        lambda s: s.tally.produce_requests,
    ),
    counter(
        "sluicegate_validated_batches",
        "Batches validated, by what became of them.",
        f"The first look: the share that is not `forwarded`. Outcomes: {_BY_OUTCOME}. Their sum is what was validated.",
        lambda s: s.tally.validated_batches,
        ("outcome",),
        OUTCOMES,
    ),
    counter(
        "sluicegate_validated_records",
        "Records of batches that were validated, by what became of the batch; of a batch too damaged to tell, none.",
        "How much of the data is touched. One bad record rejects its whole batch, as at a broker.",
        lambda s: s.tally.validated_records,
        ("outcome",),
        OUTCOMES,
    ),
    counter(
        "sluicegate_validated_bytes",
        "Bytes of batches that were validated, as they came (compressed), by what became of the batch.",
        "For sizing, and to see how much traffic a rejection costs.",
        lambda s: s.tally.validated_bytes,
        ("outcome",),
        OUTCOMES,
    ),
    counter(
        "sluicegate_accepted_batches",
        "Partitions' batches found good.",
        "With `sluicegate_rejected_batches_total`: the share of good ones.",
        lambda s: s.tally.accepted_partitions,
    ),
    counter(
        "sluicegate_accepted_records",
        "Records in batches found good.",
        "Throughput of good records.",
        lambda s: s.tally.accepted_records,
    ),
    counter(
        "sluicegate_unchecked_batches",
        "Partitions' batches of topics with checks: none.",
        "When something reached a topic although it would be rejected: it may not be checked.",
        lambda s: s.tally.unchecked_partitions,
    ),
    counter(
        "sluicegate_exempt_batches",
        "Partitions' batches of exempt clients.",
        "The same, for clients under `exempt`.",
        lambda s: s.tally.exempt_partitions,
    ),
    counter(
        "sluicegate_requests",
        "Client requests, by API and by path: `fast` (native, in groups) or `slow` (Python, one by one).",
        "The share of `fast` among Produce requests should be near 1: the slow path costs about ten times the CPU.",
        lambda s: (
            {(api, "fast"): count for api, count in s.tally.fast_requests.items()}
            | {(api, "slow"): count for api, count in s.tally.slow_requests.items()}
        ),
        ("api", "path"),
        _PATHS,
    ),
    counter(
        "sluicegate_fallbacks",
        "Produce requests that the fast path left to who looks closer, by why.",
        "When CPU rises with the same traffic. "
        + " ".join(
            f"`{why.name.lower()}`: {words}"
            for why, words in zip(
                FallbackReason,
                (
                    "a connection's first request, one after a policy has changed, or an exempt client.",
                    "a topic not looked at for five seconds, or validated only closely.",
                    "an unusual version of Produce.",
                    "something unusual around the batches.",
                    "a batch whose header is unusual or wrong.",
                    "records that are bad, far ahead, or take care.",
                    "records that may break a rule.",
                    "more than half a MiB at once.",
                ),
                strict=True,
            )
        ),
        lambda s: s.tally.fallback,
        ("reason",),
        tuple(why.name.lower() for why in FallbackReason),
    ),
    counter(
        "sluicegate_request_errors",
        "Errors that the proxy found in requests, by API: of Produce each partition that it rejected, of logins those "
        "that the broker rejected. What a broker answers otherwise passes and is not looked into.",
        "A rise says which kind of request fails. `unknown` with `MALFORMED` is a client that speaks something else, "
        "or breaks the protocol.",
        lambda s: s.tally.request_errors,
        ("api", "error"),
    ),
)
