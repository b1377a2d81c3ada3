"""What is wrong with what producers send, of which topics and clients, and what was done."""

from sluicegate.proxy.reporting.metrics.family import Family, counter

_TOPIC = ("topic",)
_TOPIC_ERROR = ("topic", "error")

REFUSALS: tuple[Family, ...] = (
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
    counter(
        "sluicegate_refused_batches",
        "Batches refused.",
        "The alert for producers that fail: their clients see this error.",
        lambda s: s.tally.refused,
        _TOPIC_ERROR,
    ),
    counter(
        "sluicegate_refused_records",
        "Records found bad.",
        "How many records are bad in batches that were refused; the others of a batch are refused with it.",
        lambda s: s.tally.refused_records,
        _TOPIC,
    ),
    counter(
        "sluicegate_observed_batches",
        "Batches forwarded that mode reject refuses.",
        "Before a topic is switched from `observe` to `reject`: this must be flat.",
        lambda s: s.tally.observed,
        _TOPIC_ERROR,
    ),
    counter(
        "sluicegate_observed_records",
        "Records found bad in batches that were forwarded.",
        "The same, in records.",
        lambda s: s.tally.observed_records,
        _TOPIC,
    ),
    counter(
        "sluicegate_fixed_batches",
        "Batches forwarded with other times.",
        "How much is written otherwise than it was sent (`fix`).",
        lambda s: s.tally.fixed,
        _TOPIC,
    ),
    counter(
        "sluicegate_fixed_records",
        "Records given other times.",
        "The same, in records.",
        lambda s: s.tally.fixed_records,
        _TOPIC,
    ),
    counter(
        "sluicegate_quarantined_batches",
        "Batches refused whose bad records were kept in another topic.",
        "When somebody has to replay what was kept.",
        lambda s: s.tally.quarantined,
        _TOPIC_ERROR,
    ),
    counter(
        "sluicegate_quarantined_records",
        "Bad records kept in another topic.",
        "The same, in records.",
        lambda s: s.tally.quarantined_records,
        _TOPIC,
    ),
    counter(
        "sluicegate_quarantine_failures",
        "Batches whose bad records could not be kept: their clients were told to send them again.",
        "Any rise: producers are stuck until the dead-letter topic can be written to.",
        lambda s: s.tally.quarantine_failures,
        _TOPIC,
    ),
    counter(
        "sluicegate_rehearsed_batches",
        "Batches a bound on trial would refuse.",
        "Before a bound is tightened, or a cluster goes to Kafka 4.",
        lambda s: s.tally.rehearsed,
        ("topic", "bound"),
    ),
    counter(
        "sluicegate_rehearsed_records",
        "Records a bound on trial finds bad.",
        "The same, in records.",
        lambda s: s.tally.rehearsed_records,
        ("topic", "bound"),
    ),
    counter(
        "sluicegate_rehearsed_client_batches",
        "Batches a bound on trial would refuse, by client id.",
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
    counter(
        "sluicegate_far_ahead_batches",
        "Good batches more than an hour ahead.",
        "Before a cluster goes to Kafka 4, which refuses these by default.",
        lambda s: s.tally.far_ahead,
        _TOPIC,
    ),
    counter(
        "sluicegate_unreadable_batches",
        "Batches forwarded that some clients cannot read.",
        "Before a topic gets `framing: strict`, and when a consumer stops for ever ([framing](framing.md)).",
        lambda s: s.tally.unreadable,
        _TOPIC,
    ),
    counter(
        "sluicegate_acks_0_closed",
        "Connections closed after a refusal that acks=0 leaves no answer for.",
        "Producers with acks=0 that come and go: nothing else tells them.",
        lambda s: s.tally.closed_acks_0,
    ),
    counter(
        "sluicegate_violations_dropped",
        "Violation events lost because their queue was full.",
        "Any rise: the disk behind `violations.file` is too slow.",
        lambda s: s.tally.violations_dropped,
    ),
    counter(
        "sluicegate_violations_failed",
        "Violation events lost because they could not be written.",
        "Any rise: the disk is full, or the folder is gone.",
        lambda s: s.tally.violations_failed,
    ),
    counter(
        "sluicegate_violations_topic_dropped",
        "Violation events that violations.topic lacks because their queue was full.",
        "Any rise: the cluster takes them too slowly.",
        lambda s: s.tally.violations_topic_dropped,
    ),
    counter(
        "sluicegate_violations_topic_failed",
        "Violation events that the cluster did not take into violations.topic.",
        "Any rise: the topic is missing, or may not be written to.",
        lambda s: s.tally.violations_topic_failed,
    ),
)
