"""What the proxy does with what producers send, and how long requests take."""

from sluicegate.proxy.reporting.metrics.batch_events import OUTCOMES
from sluicegate.proxy.reporting.metrics.family import Family, counter, histogram
from sluicegate.validation.fallback_reason import LookedCloser

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


_BY_OUTCOME = (
    "`forwarded` (good, or only observed), `fixed` (with other times), `refused`, `quarantined` (refused, and the bad "
    "records kept elsewhere)"
)
_LANES = (("Produce", "fast"), ("Produce", "close"))

FLOW: tuple[Family, ...] = (
    counter(
        "sluicegate_produce_requests",
        "Produce requests judged.",
        "The base of every share: how much is judged at all.",
        lambda s: s.tally.produce_requests,
    ),
    counter(
        "sluicegate_judged_batches",
        "Batches judged, by what became of them.",
        f"The first look: the share that is not `forwarded`. Outcomes: {_BY_OUTCOME}. Their sum is what was judged.",
        lambda s: s.tally.judged_batches,
        ("outcome",),
        OUTCOMES,
    ),
    counter(
        "sluicegate_judged_records",
        "Records of batches that were judged, by what became of the batch; of a batch too damaged to tell, none.",
        "How much of the data is touched. One bad record refuses its whole batch, as at a broker.",
        lambda s: s.tally.judged_records,
        ("outcome",),
        OUTCOMES,
    ),
    counter(
        "sluicegate_judged_bytes",
        "Bytes of batches that were judged, as they came (compressed), by what became of the batch.",
        "For sizing, and to see how much traffic a refusal costs.",
        lambda s: s.tally.judged_bytes,
        ("outcome",),
        OUTCOMES,
    ),
    counter(
        "sluicegate_accepted_batches",
        "Partitions' batches found good.",
        "With `sluicegate_refused_batches_total`: the share of good ones.",
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
        "When something reached a topic although it would be refused: it may not be checked.",
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
        "Requests of clients, by API and by lane: `fast` (natively, with their neighbours) or `close` (one by one).",
        "What clients do. The share of `fast` among Produce should be near 1: what is looked at closer costs some ten "
        "times the CPU.",
        lambda s: (
            {(api, "fast"): count for api, count in s.tally.fast_taken.items()}
            | {(api, "close"): count for api, count in s.tally.closely_taken.items()}
        ),
        ("api", "lane"),
        _LANES,
    ),
    counter(
        "sluicegate_looked_closer",
        "Produce requests that the fast lane left to who looks closer, by why.",
        "When CPU rises with the same traffic. "
        + " ".join(
            f"`{why.name.lower()}`: {words}"
            for why, words in zip(
                LookedCloser,
                (
                    "a connection's first request, one after a policy has changed, or an exempt client.",
                    "a topic not looked at for five seconds, or judged only closely.",
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
        lambda s: s.tally.looked_closer,
        ("reason",),
        tuple(why.name.lower() for why in LookedCloser),
    ),
    counter(
        "sluicegate_request_errors",
        "Errors that the proxy found in requests, by API: of Produce each partition that it refused, of logins those "
        "that the broker refused. What a broker answers otherwise passes and is not looked into.",
        "A rise says which kind of request fails. `unknown` with `MALFORMED` is a client that speaks something else, "
        "or breaks the protocol.",
        lambda s: s.tally.request_errors,
        ("api", "error"),
    ),
)
