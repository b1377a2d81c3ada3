"""Declares the metrics about validated traffic, requests and latencies."""

from sluicegate.proxy.reporting.metrics.family import Family, counter, gauge, histogram
from sluicegate.validation.fallback_reason import FallbackReason
from sluicegate.validation.outcome import Outcome

_SAMPLED = (
    "On the fast path each worker times one in 128 requests of an API, which counts as 128; on the slow path every "
    "request is timed."
)

TIME: tuple[Family, ...] = (
    histogram(
        "sluicegate_request_proxy_seconds",
        "The time from the last byte of a request until the proxy forwards it or responds. Requests that are "
        f"forwarded while they arrive are not timed. {_SAMPLED}",
        "Shows the latency that the proxy adds, including waits for topic settings, schema registries and validation "
        "threads.",
        lambda s: s.counters.proxy_seconds,
        ("api",),
    ),
    histogram(
        "sluicegate_request_upstream_seconds",
        "The time from forwarding a request until the broker's response begins, including the wait for earlier "
        f"requests of the connection. {_SAMPLED}",
        "Shows whether slow brokers are the reason for slow producers. By design, Fetch requests wait up to "
        "fetch.max.wait.ms.",
        lambda s: s.counters.upstream_seconds,
        ("api",),
    ),
    histogram(
        "sluicegate_event_loop_delay_seconds",
        "The delay of the event loop, sampled four times a second on each worker.",
        "Check it if all clients are slow at the same time. Above 0.05 s the process needs more than one core.",
        lambda s: s.counters.loop_delay,
    ),
)


_OUTCOMES = tuple(outcome.value for outcome in Outcome)
_BY_OUTCOME = (
    "`accepted` (the broker has stored it), `rejected` (by the proxy, or by the broker with an error that is final), "
    "`resend` (the client was asked to send the batch again), `unknown` (acks=0, or the connection ended before the "
    "response)"
)
_PATHS = (("Produce", "fast"), ("Produce", "slow"))

FLOW: tuple[Family, ...] = (
    counter(
        "sluicegate_produce_requests",
        "Validated Produce requests.",
        "The denominator for all ratios of requests.",
        lambda s: s.counters.produce_requests,
    ),
    counter(
        "sluicegate_validated_batches",
        "Validated batches, by outcome.",
        f"Start with the share that is not `accepted`. Outcomes: {_BY_OUTCOME}. A batch counts when its outcome is "
        f"known.",
        lambda s: s.counters.validated_batches,
        ("outcome",),
        _OUTCOMES,
    ),
    counter(
        "sluicegate_validated_records",
        "Records of validated batches; a batch that cannot be parsed counts none.",
        "The denominator for all ratios of records.",
        lambda s: s.counters.validated_records,
    ),
    counter(
        "sluicegate_validated_bytes",
        "Bytes of validated batches as received (compressed).",
        "Shows the throughput, for sizing.",
        lambda s: s.counters.validated_bytes,
    ),
    counter(
        "sluicegate_accepted_batches",
        "Valid batches.",
        "Compare it with `sluicegate_rejected_batches_total` for the share of valid batches.",
        lambda s: s.counters.accepted_partitions,
    ),
    counter(
        "sluicegate_accepted_records",
        "Records in valid batches.",
        "Shows the throughput of valid records.",
        lambda s: s.counters.accepted_records,
    ),
    counter(
        "sluicegate_client_batches",
        "Validated batches, by client id and outcome. Each process has at most 100 client ids; all others count as "
        "`other`. Batches of the fast path are counted about once a second.",
        "Shows the share of a producer's batches that is accepted, for which `deploy/prometheus/` has recording rules.",
        lambda s: s.counters.client_batches,
        ("client_id", "outcome"),
    ),
    counter(
        "sluicegate_converted_requests",
        "Produce requests v0 to v2 that the proxy has converted to v3 (`listen.legacy: convert`), by client id and "
        "version. Each process has at most 100 client ids; all others count as `other`.",
        "Shows which producers still need the conversion ([Legacy producers](how-to/legacy-producers.md)).",
        lambda s: s.counters.converted_requests,
        ("client_id", "version"),
    ),
    gauge(
        "sluicegate_client_owner_info",
        "The value 1 for each client id with its own series, with the team that owns the client and its contact "
        "(`client_owners` in the configuration).",
        "Adds the owner to other metrics, for example for the accepted share of an owner's clients.",
        lambda s: {(client_id, *owner): 1 for client_id, owner in s.client_owners.items()},
        ("client_id", "owner", "contact"),
    ),
    counter(
        "sluicegate_topic_batches",
        "Validated batches, by topic and outcome, for at most 500 topics that exist in the cluster or the "
        "configuration; all others count as `other`. Batches of the fast path are counted about once a second.",
        "Shows the traffic of a topic and the share of its batches that is accepted. `deploy/prometheus/` has "
        "recording rules for this share, by topic and by owner.",
        lambda s: s.counters.topic_batches,
        ("topic", "outcome"),
    ),
    counter(
        "sluicegate_unchecked_batches",
        "Batches for topics with `checks: none`.",
        "Check it if a bad record reached a topic: the topic may not be validated.",
        lambda s: s.counters.unchecked_partitions,
    ),
    counter(
        "sluicegate_exempt_batches",
        "Batches of exempt clients.",
        "Check it if a bad record reached a topic: the client may be exempt.",
        lambda s: s.counters.exempt_partitions,
    ),
    counter(
        "sluicegate_requests",
        "Client requests, by API and by path: `fast` (native, in groups) or `slow` (Python, one by one).",
        "The share of `fast` among Produce requests should be near 1: the slow path costs about ten times the CPU.",
        lambda s: (
            {(api, "fast"): count for api, count in s.counters.fast_requests.items()}
            | {(api, "slow"): count for api, count in s.counters.slow_requests.items()}
        ),
        ("api", "path"),
        _PATHS,
    ),
    counter(
        "sluicegate_fallbacks",
        "Produce requests that fell back to the slow path, by reason.",
        "Check it if the CPU time increases at constant traffic. "
        + " ".join(
            f"`{why.name.lower()}`: {words}"
            for why, words in zip(
                FallbackReason,
                (
                    "a connection's first request, the first after a policy change, or an exempt client.",
                    "a topic that was not validated for five seconds, or that only the slow path validates.",
                    "an uncommon version of Produce.",
                    "uncommon fields around the batches.",
                    "a batch with an uncommon or wrong header.",
                    "records that are bad, far ahead, or need the full validation.",
                    "records that may violate a rule.",
                    "more than half a MiB at once.",
                ),
                strict=True,
            )
        ),
        lambda s: s.counters.fallback,
        ("reason",),
        tuple(why.name.lower() for why in FallbackReason),
    ),
    counter(
        "sluicegate_request_errors",
        "Errors that the proxy detects, by API: rejected partitions of Produce requests, logins that the broker "
        "rejected, and rejected changes of topics with [shared state](shared-state.md) and of topic settings.",
        "Shows which API fails. `unknown` with `MALFORMED` means that a client uses another protocol or violates "
        "Kafka's.",
        lambda s: s.counters.request_errors,
        ("api", "error"),
    ),
    counter(
        "sluicegate_topic_setting_changes",
        "Topics whose settings of sluicegate a client has changed, by API.",
        "Shows how often teams change their policies. The log shows the client, the topics and the keys.",
        lambda s: s.counters.topic_setting_changes,
        ("api",),
    ),
)
