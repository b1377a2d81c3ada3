"""Builds the texts about bad messages of magic 0 and 1."""

from dataclasses import dataclass

from sluicegate.protocol.records.message_set import Message
from sluicegate.validation import wording
from sluicegate.validation.timestamps import TimeWindow
from sluicegate.validation.verdict import BadRecord, Reason

NULL_KEY, OUT_OF_WINDOW, APPEND_TIME, OTHER_MAGIC = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class LegacyFinding:
    """A bad message: its position in the set, its flaw, and its time (ms), which may be the wrapper's."""

    index: int
    flaw: int
    message: Message
    timestamp: int


@dataclass(frozen=True, slots=True)
class LegacyErrors:
    """Describes the bad messages of one set. `window` is None if the broker sets the time itself."""

    topic: str
    partition: int
    window: TimeWindow | None

    def describe(self, finding: LegacyFinding, outer: Message, base: int) -> BadRecord:
        """Return the bad record of a finding; `base` is added to its offset, `outer` declares the timestamp type."""
        message, timestamp = finding.message, finding.timestamp
        offset = base + message.offset
        if finding.flaw == NULL_KEY:
            text = wording.key_missing(self.topic, self.partition)
            return BadRecord(finding.index, timestamp, Reason.NULL_KEY, text)
        if finding.flaw == OUT_OF_WINDOW and self.window is not None:
            text = wording.timestamp_out_of_range(timestamp, offset, self.window.earliest, self.window.latest)
            breach = self.window.breach(timestamp) or Reason.TIMESTAMP_BEFORE
            return BadRecord(finding.index, timestamp, breach, wording.diagnosed(text, timestamp, self.window.now_ms))
        claims_append_time = finding.flaw == APPEND_TIME or (outer.is_log_append_time and message.magic > 0)
        record = wording.legacy_batch(offset, _render(message, timestamp, claims_append_time))
        if finding.flaw == OTHER_MAGIC:
            text = wording.inner_magic(record, outer.magic, self.topic, self.partition)
            return BadRecord(finding.index, timestamp, Reason.INNER_MAGIC, text)
        return BadRecord(finding.index, timestamp, Reason.TIMESTAMP_TYPE, wording.log_append_time_claimed(record))


def _render(message: Message, timestamp: int, claims_append_time: bool) -> str:
    """Return a magic 0 or 1 message as a broker prints it."""
    sizes = f"key={max(message.key_size, 0)} bytes, value={max(message.value_size, 0)} bytes"
    head = f"magic={message.magic}, attributes={message.attributes}, compression=NONE, crc={message.crc}"
    if message.magic == 0:
        return f"Record({head}, {sizes})"
    kind = "LogAppendTime" if claims_append_time else "CreateTime"
    return f"Record({head}, {kind}={timestamp}, {sizes})"
