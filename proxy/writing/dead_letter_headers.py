"""The headers of a record that is kept: its own, as they came, and behind them what was wrong with it, and who sent it.

Of headers with one name Kafka's clients show the last first, so ours are found also where a record had such names
itself, because it was kept before.
"""

from sluicegate.protocol.records.contents import TakenRecord
from sluicegate.proxy.reporting.build_info import VERSION
from sluicegate.proxy.reporting.events.violation_event import ClientDetails
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.writing.topic_writer import Header
from sluicegate.validation.dead_letter_headers import DeadLetterHeader, packed, shown
from sluicegate.validation.verdict import Reason


def headers_of(record: TakenRecord, letters: DeadLetters, client: ClientDetails) -> list[Header]:
    """All headers of what is written for `record`; what is not known of the client has none."""
    own: list[Header] = [*shown(record.headers)]
    if any(name.encode() != raw for (name, _), (raw, _) in zip(own, record.headers, strict=True)):
        own.append((DeadLetterHeader.OWN, packed(record.headers)))
    return [*own, *((name, text.encode(errors="replace")) for name, text in _ours(record, letters, client))]


def _ours(record: TakenRecord, letters: DeadLetters, client: ClientDetails) -> list[tuple[str, str]]:
    software = None
    if client.software_name is not None:
        software = f"{client.software_name} {client.software_version or ''}".rstrip()
    rules = () if isinstance(record.why, Reason) else record.why
    told = (
        (DeadLetterHeader.RULE, ", ".join(rules) or None),
        (DeadLetterHeader.CLIENT_ID, client.client_id),
        (DeadLetterHeader.SOFTWARE, software),
        (DeadLetterHeader.PRINCIPAL, client.principal),
    )
    return [
        (DeadLetterHeader.REASON, (Reason.RULE if rules else record.why).value),
        (DeadLetterHeader.TOPIC, letters.source),
        (DeadLetterHeader.PARTITION, str(letters.partition)),
        (DeadLetterHeader.INDEX, str(record.index)),
        (DeadLetterHeader.TIMESTAMP, str(record.timestamp)),
        *((name, text) for name, text in told if text is not None),
        (DeadLetterHeader.ADDRESS, client.peer),
        (DeadLetterHeader.VERSION, VERSION),
    ]
