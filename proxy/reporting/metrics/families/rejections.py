"""Declares the metrics about violations by topic, client and rule, and about their outcomes."""

from sluicegate.proxy.reporting.metrics.batch_events import BatchEvent, Unit
from sluicegate.proxy.reporting.metrics.family import Family, batch_counter, counter, gauge

_TOPIC_ERROR = ("topic", "error")

REJECTIONS: tuple[Family, ...] = (
    counter(
        "sluicegate_violations",
        "Batches with violations, by topic, rule (the name of a rule, or a broker's reason such as "
        "timestamp_in_future), mode of the policy, outcome of the batch, and client id. Each process has at most 100 "
        "client ids and 1000 series; all others count as `other`.",
        "Shows which clients violate which rules. The event file lists each violation with its record and address "
        "([violations](violations.md)).",
        lambda s: s.counters.violations,
        ("topic", "rule", "mode", "outcome", "client_id"),
    ),
    gauge(
        "sluicegate_topic_owner_info",
        "The value 1 for each topic with its own series, with the team that owns the topic and its contact (`owner` "
        "in the configuration).",
        "Adds the owner to another metric: `rate(sluicegate_rejected_batches_total[5m]) * on(instance, topic) "
        "group_left(owner, "
        "contact) sluicegate_topic_owner_info`.",
        lambda s: {(topic, *owner): 1 for topic, owner in s.topic_owners.items()},
        ("topic", "owner", "contact"),
    ),
    batch_counter(
        "sluicegate_rejected_batches",
        "Batches that the proxy has rejected, including quarantined batches.",
        "Use this metric for an alert on failing producers. `error` is the error that the client got, which may be a "
        "broker's own error, or `none` if it got no response (acks=0, or the connection ended).",
        BatchEvent.REJECTED,
        labels=_TOPIC_ERROR,
    ),
    batch_counter(
        "sluicegate_rejected_records",
        "Bad records in rejected batches.",
        "Shows how many records are bad. The valid records of such batches are rejected too.",
        BatchEvent.REJECTED,
        labels=_TOPIC_ERROR,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_observed_batches",
        "Batches forwarded in mode `observe` that mode `reject` would reject, including those whose bad records were "
        "copied.",
        "Should not increase before you switch a topic from `observe` to `reject`.",
        BatchEvent.OBSERVED,
        BatchEvent.COPIED,
        labels=_TOPIC_ERROR,
    ),
    batch_counter(
        "sluicegate_observed_records",
        "Bad records in batches that were forwarded in mode `observe`.",
        "Shows how many records are affected.",
        BatchEvent.OBSERVED,
        BatchEvent.COPIED,
        labels=_TOPIC_ERROR,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_fixed_batches",
        "Batches forwarded with corrected timestamps.",
        "Shows how many batches `fix` changes.",
        BatchEvent.FIXED,
    ),
    batch_counter(
        "sluicegate_fixed_records",
        "Records with corrected timestamps.",
        "Shows how many records are affected.",
        BatchEvent.FIXED,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_quarantined_batches",
        "Rejected batches whose bad records were stored in the dead-letter topic.",
        "Shows how many batches may need a replay.",
        BatchEvent.QUARANTINED,
        labels=_TOPIC_ERROR,
    ),
    batch_counter(
        "sluicegate_quarantined_records",
        "Bad records stored in the dead-letter topic.",
        "Shows how many records are affected.",
        BatchEvent.QUARANTINED,
        labels=_TOPIC_ERROR,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_masked_batches",
        "Batches forwarded with masked or hashed fields (`sensitive`).",
        "Shows whether sensitive fields are found. Zero means that no record has such fields.",
        BatchEvent.MASKED,
    ),
    batch_counter(
        "sluicegate_masked_records",
        "Records with masked or hashed fields.",
        "Shows how many records are affected.",
        BatchEvent.MASKED,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_marked_batches",
        "Batches forwarded with marks on their bad records (`mode: mark`). A batch whose records violate bounds and "
        "rules counts for each.",
        "Shows how many batches with bad records consumers receive.",
        BatchEvent.MARKED,
        labels=_TOPIC_ERROR,
    ),
    batch_counter(
        "sluicegate_marked_records",
        "Marked records.",
        "Shows how many records are affected.",
        BatchEvent.MARKED,
        labels=_TOPIC_ERROR,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_copied_batches",
        "Batches forwarded in mode `observe` after copies of their bad records were stored in the dead-letter topic.",
        "Shows how many observed batches you can inspect in the dead-letter topic.",
        BatchEvent.COPIED,
        labels=_TOPIC_ERROR,
    ),
    batch_counter(
        "sluicegate_copied_records",
        "Copies of bad records stored in the dead-letter topic; the records are in their own topic too.",
        "Shows how many records are affected.",
        BatchEvent.COPIED,
        labels=_TOPIC_ERROR,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_quarantine_failures",
        "Batches with bad records that could not be stored; the producers were asked to retry.",
        "Should not increase. Producers make no progress until the dead-letter topic is writable.",
        BatchEvent.QUARANTINE_FAILED,
    ),
    batch_counter(
        "sluicegate_rehearsed_batches",
        "Batches that a rehearsed bound would reject.",
        "Check it before you tighten a bound or upgrade a cluster to Kafka 4.",
        BatchEvent.REHEARSED,
        labels=("topic", "bound"),
    ),
    batch_counter(
        "sluicegate_rehearsed_records",
        "Records that a rehearsed bound would reject.",
        "Shows how many records are affected.",
        BatchEvent.REHEARSED,
        labels=("topic", "bound"),
        unit=Unit.RECORDS,
    ),
    counter(
        "sluicegate_rehearsed_client_batches",
        "Batches that a rehearsed bound would reject, by client id.",
        "Shows the clients to correct before the bound is enforced.",
        lambda s: s.counters.rehearsed_clients,
        ("client_id", "bound"),
    ),
    counter(
        "sluicegate_rule_batches",
        "Batches that violate a rule of the configuration or have masked fields, by rule and outcome of the batch.",
        "Shows which of your rules producers violate.",
        lambda s: s.counters.rule_batches,
        ("rule", "outcome"),
    ),
    counter(
        "sluicegate_rule_records",
        "Records that violate a rule of the configuration or have masked fields.",
        "Shows how many records are affected.",
        lambda s: s.counters.rule_records,
        ("rule", "outcome"),
    ),
    batch_counter(
        "sluicegate_future_timestamp_batches",
        "Valid batches with timestamps more than an hour in the future.",
        "Check it before an upgrade to Kafka 4, which rejects these batches by default.",
        BatchEvent.FUTURE_TIMESTAMP,
    ),
    batch_counter(
        "sluicegate_unreadable_batches",
        "Forwarded batches that some clients cannot read.",
        "Check it before you set `framing: strict` for a topic, and if a consumer makes no progress "
        "([framing](framing.md)).",
        BatchEvent.UNREADABLE,
    ),
    counter(
        "sluicegate_acks_0_connections_closed",
        "Connections closed after a rejection, because acks=0 has no response.",
        "Producers with acks=0 reconnect, because the closed connection is their only error.",
        lambda s: s.counters.acks_0_closed,
    ),
    counter(
        "sluicegate_violation_events_dropped",
        "Violation events that were lost because the queue was full.",
        "Should not increase. The disk of `violations.file` is too slow.",
        lambda s: s.counters.violation_events_dropped,
    ),
    counter(
        "sluicegate_violation_events_failed",
        "Violation events that were lost because they could not be written.",
        "Should not increase. The disk is full, or the folder is missing.",
        lambda s: s.counters.violation_events_failed,
    ),
    counter(
        "sluicegate_violation_topic_events_dropped",
        "Violation events missing in violations.topic because the queue was full.",
        "Should not increase. The cluster accepts events too slowly.",
        lambda s: s.counters.violation_topic_events_dropped,
    ),
    counter(
        "sluicegate_violation_topic_events_failed",
        "Violation events that the cluster did not accept for violations.topic.",
        "Should not increase. The topic is missing or not writable.",
        lambda s: s.counters.violation_topic_events_failed,
    ),
)
