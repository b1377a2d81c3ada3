"""What is wrong with what producers send, of which topics and clients, and what was done."""

from sluicegate.proxy.reporting.metrics.batch_events import BatchEvent, Unit
from sluicegate.proxy.reporting.metrics.family import Family, batch_counter, counter

_TOPIC_ERROR = ("topic", "error")

REJECTIONS: tuple[Family, ...] = (
    counter(
        "sluicegate_violations",
        "Batches that break something, by topic, by what they break (the name of a rule, or what a broker would say, "
        "as timestamp_after), by what became of them, and by client id. Bounded: 100 client ids, 1000 series for each "
        "process; all others count as other.",
        "To find out who it is. The event file has every one with its record and address "
        "([violations](violations.md)).",
        lambda s: s.tally.violations,
        ("topic", "rule", "mode", "client_id"),
    ),
    batch_counter(
        "sluicegate_rejected_batches",
        "Batches rejected.",
        "The alert for producers that fail: their clients see this error.",
        BatchEvent.REJECTED,
        labels=_TOPIC_ERROR,
    ),
    batch_counter(
        "sluicegate_rejected_records",
        "Records found bad.",
        "How many records are bad in batches that were rejected; the others of a batch are rejected with it.",
        BatchEvent.REJECTED,
        labels=_TOPIC_ERROR,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_observed_batches",
        "Batches forwarded that mode reject rejects.",
        "Before a topic is switched from `observe` to `reject`: this must be flat.",
        BatchEvent.OBSERVED,
        labels=_TOPIC_ERROR,
    ),
    batch_counter(
        "sluicegate_observed_records",
        "Records found bad in batches that were forwarded.",
        "The same, in records.",
        BatchEvent.OBSERVED,
        labels=_TOPIC_ERROR,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_fixed_batches",
        "Batches forwarded with other times.",
        "How much is written otherwise than it was sent (`fix`).",
        BatchEvent.FIXED,
    ),
    batch_counter(
        "sluicegate_fixed_records",
        "Records given other times.",
        "The same, in records.",
        BatchEvent.FIXED,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_quarantined_batches",
        "Batches rejected whose bad records were kept in another topic.",
        "When somebody has to replay what was kept.",
        BatchEvent.QUARANTINED,
        labels=_TOPIC_ERROR,
    ),
    batch_counter(
        "sluicegate_quarantined_records",
        "Bad records kept in another topic.",
        "The same, in records.",
        BatchEvent.QUARANTINED,
        labels=_TOPIC_ERROR,
        unit=Unit.RECORDS,
    ),
    batch_counter(
        "sluicegate_quarantine_failures",
        "Batches whose bad records could not be kept: their clients were told to send them again.",
        "Any rise: producers are stuck until the dead-letter topic can be written to.",
        BatchEvent.QUARANTINE_FAILED,
    ),
    batch_counter(
        "sluicegate_rehearsed_batches",
        "Batches a bound on trial would reject.",
        "Before a bound is tightened, or a cluster goes to Kafka 4.",
        BatchEvent.REHEARSED,
        labels=("topic", "bound"),
    ),
    batch_counter(
        "sluicegate_rehearsed_records",
        "Records a bound on trial finds bad.",
        "The same, in records.",
        BatchEvent.REHEARSED,
        labels=("topic", "bound"),
        unit=Unit.RECORDS,
    ),
    counter(
        "sluicegate_rehearsed_client_batches",
        "Batches a bound on trial would reject, by client id.",
        "Whom to talk to before the bound is in force.",
        lambda s: s.tally.rehearsed_clients,
        ("client_id", "bound"),
    ),
    counter(
        "sluicegate_rule_batches",
        "Batches that broke a rule.",
        "Which of your own rules producers break, by what became of the batch.",
        lambda s: s.tally.rule_batches,
        ("rule", "mode"),
    ),
    counter(
        "sluicegate_rule_records",
        "Records that broke a rule.",
        "The same, in records.",
        lambda s: s.tally.rule_records,
        ("rule", "mode"),
    ),
    batch_counter(
        "sluicegate_far_ahead_batches",
        "Good batches more than an hour ahead.",
        "Before a cluster goes to Kafka 4, which rejects these by default.",
        BatchEvent.FAR_AHEAD,
    ),
    batch_counter(
        "sluicegate_unreadable_batches",
        "Batches forwarded that some clients cannot read.",
        "Before a topic gets `framing: strict`, and when a consumer stops for ever ([framing](framing.md)).",
        BatchEvent.UNREADABLE,
    ),
    counter(
        "sluicegate_acks_0_connections_closed",
        "Connections closed after a rejection that acks=0 leaves no answer for.",
        "Producers with acks=0 that come and go: nothing else tells them.",
        lambda s: s.tally.acks_0_closed,
    ),
    counter(
        "sluicegate_violation_events_dropped",
        "Violation events lost because their queue was full.",
        "Any rise: the disk behind `violations.file` is too slow.",
        lambda s: s.tally.violation_events_dropped,
    ),
    counter(
        "sluicegate_violation_events_failed",
        "Violation events lost because they could not be written.",
        "Any rise: the disk is full, or the folder is gone.",
        lambda s: s.tally.violation_events_failed,
    ),
    counter(
        "sluicegate_violation_topic_events_dropped",
        "Violation events that violations.topic lacks because their queue was full.",
        "Any rise: the cluster takes them too slowly.",
        lambda s: s.tally.violation_topic_events_dropped,
    ),
    counter(
        "sluicegate_violation_topic_events_failed",
        "Violation events that the cluster did not take into violations.topic.",
        "Any rise: the topic is missing, or may not be written to.",
        lambda s: s.tally.violation_topic_events_failed,
    ),
)
