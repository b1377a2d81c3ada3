"""Declares the metrics of violations by topic, client and rule, and of their outcomes."""

from sluicegate.proxy.reporting.metrics.batch_events import BatchEvent, Unit
from sluicegate.proxy.reporting.metrics.family import Family, batch_counter, counter, gauge

_TOPIC_ERROR = ("topic", "error")

REJECTIONS: tuple[Family, ...] = (
    counter(
        "sluicegate_violations",
        "Batches with violations, by topic, rule (its name, or a broker's reason such as timestamp_in_future), mode "
        "(what the policy asks for), outcome of the batch, and client id. Bounded: 100 client ids, 1000 series for "
        "each process; the others count as `other`.",
        "To find the client. The event file has each violation with its record and address "
        "([violations](violations.md)).",
        lambda s: s.counters.violations,
        ("topic", "rule", "mode", "outcome", "client_id"),
    ),
    gauge(
        "sluicegate_topic_owner_info",
        "1, by topic, the team that owns it and its contact (`owner` in the configuration); of topics with own series.",
        "To name the owner: `rate(sluicegate_rejected_batches_total[5m]) * on(instance, topic) group_left(owner, "
        "contact) sluicegate_topic_owner_info`.",
        lambda s: {(topic, *owner): 1 for topic, owner in s.topic_owners.items()},
        ("topic", "owner", "contact"),
    ),
    batch_counter(
        "sluicegate_rejected_batches",
        "Batches that the proxy has rejected, quarantined ones included.",
        "The alert for failing producers. `error`: what their clients got, a broker's own error if that came first; "
        "`none`: they got no response (acks=0, or the connection ended).",
        BatchEvent.REJECTED,
        labels=_TOPIC_ERROR,
    ),
    batch_counter(
        "sluicegate_rejected_records",
        "Bad records in rejected batches.",
        "How many records are bad; the valid records of a batch are rejected with it.",
        BatchEvent.REJECTED,
        labels=_TOPIC_ERROR,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_observed_batches",
        "Batches forwarded in mode `observe` that mode `reject` rejects, copied ones included.",
        "Before you switch a topic from `observe` to `reject`: this must not rise.",
        BatchEvent.OBSERVED,
        BatchEvent.COPIED,
        labels=_TOPIC_ERROR,
    ),
    batch_counter(
        "sluicegate_observed_records",
        "Bad records in batches forwarded in mode `observe`.",
        "The same, in records.",
        BatchEvent.OBSERVED,
        BatchEvent.COPIED,
        labels=_TOPIC_ERROR,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_fixed_batches",
        "Batches forwarded with corrected timestamps.",
        "How much data mode `fix` changes.",
        BatchEvent.FIXED,
    ),
    batch_counter(
        "sluicegate_fixed_records",
        "Records with corrected timestamps.",
        "The same, in records.",
        BatchEvent.FIXED,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_quarantined_batches",
        "Rejected batches with bad records stored in the dead-letter topic.",
        "How much there is to replay.",
        BatchEvent.QUARANTINED,
        labels=_TOPIC_ERROR,
    ),
    batch_counter(
        "sluicegate_quarantined_records",
        "Bad records stored in the dead-letter topic.",
        "The same, in records.",
        BatchEvent.QUARANTINED,
        labels=_TOPIC_ERROR,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_masked_batches",
        "Batches forwarded with masked or hashed fields (`sensitive`).",
        "That sensitive fields are found: zero means that no record has them.",
        BatchEvent.MASKED,
    ),
    batch_counter(
        "sluicegate_masked_records",
        "Records with masked or hashed fields.",
        "The same, in records.",
        BatchEvent.MASKED,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_marked_batches",
        "Batches forwarded with marks on their bad records (`mode: mark`). A batch whose records violate bounds and "
        "rules counts for each.",
        "How many batches consumers get with bad records.",
        BatchEvent.MARKED,
        labels=_TOPIC_ERROR,
    ),
    batch_counter(
        "sluicegate_marked_records",
        "Marked records.",
        "The same, in records.",
        BatchEvent.MARKED,
        labels=_TOPIC_ERROR,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_copied_batches",
        "Batches forwarded in mode `observe` after copies of their bad records were stored in the dead-letter topic.",
        "How many of the observed batches you can inspect in the dead-letter topic.",
        BatchEvent.COPIED,
        labels=_TOPIC_ERROR,
    ),
    batch_counter(
        "sluicegate_copied_records",
        "Copies of bad records stored in the dead-letter topic; the records are in their own topic too.",
        "The same, in records.",
        BatchEvent.COPIED,
        labels=_TOPIC_ERROR,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_quarantine_failures",
        "Batches with bad records that could not be stored; the producers were asked to retry.",
        "Any rise: producers are stuck until the dead-letter topic is writable.",
        BatchEvent.QUARANTINE_FAILED,
    ),
    batch_counter(
        "sluicegate_rehearsed_batches",
        "Batches that a rehearsed bound would reject.",
        "Before you tighten a bound or upgrade a cluster to Kafka 4.",
        BatchEvent.REHEARSED,
        labels=("topic", "bound"),
    ),
    batch_counter(
        "sluicegate_rehearsed_records",
        "Records that a rehearsed bound would reject.",
        "The same, in records.",
        BatchEvent.REHEARSED,
        labels=("topic", "bound"),
        unit=Unit.RECORDS,
    ),
    counter(
        "sluicegate_rehearsed_client_batches",
        "Batches that a rehearsed bound would reject, by client id.",
        "The clients to fix before the bound is in force.",
        lambda s: s.counters.rehearsed_clients,
        ("client_id", "bound"),
    ),
    counter(
        "sluicegate_rule_batches",
        "Batches that violate a rule of the configuration, or have fields that it masks, by rule and "
        "outcome of the batch.",
        "Which of your rules producers violate.",
        lambda s: s.counters.rule_batches,
        ("rule", "outcome"),
    ),
    counter(
        "sluicegate_rule_records",
        "Records that violate a rule of the configuration, or have fields that it masks.",
        "The same, in records.",
        lambda s: s.counters.rule_records,
        ("rule", "outcome"),
    ),
    batch_counter(
        "sluicegate_future_timestamp_batches",
        "Valid batches with timestamps more than an hour ahead.",
        "Before an upgrade to Kafka 4, which rejects these by default.",
        BatchEvent.FUTURE_TIMESTAMP,
    ),
    batch_counter(
        "sluicegate_unreadable_batches",
        "Forwarded batches that some clients cannot read.",
        "Before you set `framing: strict` for a topic, and if a consumer gets stuck ([framing](framing.md)).",
        BatchEvent.UNREADABLE,
    ),
    counter(
        "sluicegate_acks_0_connections_closed",
        "Connections closed after a rejection, because acks=0 has no response.",
        "Producers with acks=0 reconnect: the closed connection is their only error.",
        lambda s: s.counters.acks_0_closed,
    ),
    counter(
        "sluicegate_violation_events_dropped",
        "Violation events lost because the queue was full.",
        "Any rise: the disk of `violations.file` is too slow.",
        lambda s: s.counters.violation_events_dropped,
    ),
    counter(
        "sluicegate_violation_events_failed",
        "Violation events lost because they could not be written.",
        "Any rise: the disk is full, or the folder is gone.",
        lambda s: s.counters.violation_events_failed,
    ),
    counter(
        "sluicegate_violation_topic_events_dropped",
        "Violation events missing in violations.topic because the queue was full.",
        "Any rise: the cluster accepts them too slowly.",
        lambda s: s.counters.violation_topic_events_dropped,
    ),
    counter(
        "sluicegate_violation_topic_events_failed",
        "Violation events that the cluster did not accept for violations.topic.",
        "Any rise: the topic is missing or not writable.",
        lambda s: s.counters.violation_topic_events_failed,
    ),
)
