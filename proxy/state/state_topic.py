"""Reads and writes the state topic with the proxy's own login, in a separate thread.

Every record is applied in the partition's order. A change is complete only when this proxy has written it and read it
back. So a proxy that reports a change as done has also applied every earlier change.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import structlog

from sluicegate.config.state import StateTopics
from sluicegate.config.upstream import Upstream
from sluicegate.proxy.reporting.bounded_text import cut, printable
from sluicegate.proxy.state.agreed_state import AgreedState, StateFull
from sluicegate.proxy.state.bounded_read import READER, stops_reading
from sluicegate.proxy.state.change import StateChange, UnreadableChange, decode, encode, key_of
from sluicegate.proxy.state.settings_table import SettingsTable
from sluicegate.proxy.state.snapshot_file import SnapshotFile, SnapshotUnreadable, StateSnapshot
from sluicegate.proxy.state.suspension import time_text
from sluicegate.proxy.state.topic_description import (
    REQUEST_SECONDS,
    TopicUnavailable,
    admin_client,
    connected,
    describe,
)
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from sluicegate.proxy.writing.topic_writer import DeliveryFailure, RecordNotAccepted, TopicWriter

_POLL_SECONDS = 0.2
_LOOK_SECONDS = 5.0
_SAVE_SECONDS = 60.0
# Saving a large state after each change would take more time than reading.
_PAUSE_FOR_SAVING = 10
_MOST_TOGETHER = 1000
_AGAIN_SECONDS = 0.5
_JOIN_SECONDS = 2.0
_READER: dict[str, str | int | bool] = {
    **READER,
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 500,
    "fetch.message.max.bytes": 1 << 20,
    "queued.max.messages.kbytes": 4 << 10,
}
_WRITER: dict[str, str | int | bool] = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.timeout.ms": 3000,
}


class StateUnwritable(Exception):
    """A change was not stored, or it is unknown whether it was.

    The message gives the reason. If `is_temporary` is true, the change may succeed on a retry.
    """

    def __init__(self, why: str, is_temporary: bool = True) -> None:
        super().__init__(why)
        self.is_temporary = is_temporary


class _AwaitedChange:
    """A change that was written and not yet read back.

    `why_ineffective` explains why its record has no effect, or is None.
    """

    def __init__(self) -> None:
        self.is_read = threading.Event()
        self.why_ineffective: str | None = None


class _Unreadable(Exception):
    """The topic cannot be read now. The message gives the reason."""


class StateTopic:
    """One proxy's state topic.

    `on_state` receives each state, and returns when it is in force. `on_change` receives each change since the last
    known state, with that state. `deleted_topics` returns the changes that delete the settings of topics that no longer
    exist. `on_read` is called once, when the state was read from the topic and is in force. All are called in the
    reading thread. `status` contains the conditions about the topic.
    """

    def __init__(
        self,
        keys: StateTopics,
        upstream: Upstream,
        on_state: Callable[[AgreedState], None],
        on_change: Callable[[StateChange, AgreedState], None],
        status: Status,
        deleted_topics: Callable[[Any, SettingsTable], Sequence[StateChange]],
        on_read: Callable[[], None],
        now_ms: Callable[[], int] = lambda: time.time_ns() // 10**6,
    ) -> None:
        self._topic = keys.topic
        self._deleted_topics = deleted_topics
        self._upstream = upstream
        self._on_state = on_state
        self._on_change = on_change
        self._status = status
        self._now_ms = now_ms
        self._on_read: Callable[[], None] | None = on_read
        self._file = None if keys.snapshot_file is None else SnapshotFile(keys.snapshot_file, keys.topic)
        self._log = structlog.get_logger("sluicegate.state")
        self._known: StateSnapshot | None = None
        self._saved_at, self._is_unsaved, self._save_pause = -_SAVE_SECONDS, False, 0.0
        self._why_unreadable: str | None = f"state.topic {self._topic} is not read yet"
        self._logged_error = ""
        self._writing = threading.Lock()
        self._writer = TopicWriter(upstream, _WRITER)
        self._awaited: dict[str, _AwaitedChange] = {}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="state topic", daemon=True)

    @property
    def settings(self) -> SettingsTable:
        """The topic settings that are currently known."""
        known = self._known
        return SettingsTable() if known is None else known.state.settings

    def start(self) -> None:
        """Use the last known state from the snapshot file, if there is one, and start reading the topic from there."""
        self._report_unreadable("not read yet")
        self._thread.start()

    def close(self) -> None:
        """Stop reading."""
        self._ends.set()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_SECONDS)

    def commit(self, changes: Sequence[StateChange], seconds: float) -> None:
        """Write changes, and wait at most `seconds` until this proxy has applied them.

        Blocks. Raises StateUnwritable.
        """
        deadline = time.monotonic() + seconds
        awaited = {change.id: _AwaitedChange() for change in changes}
        with self._writing:
            if self._why_unreadable is not None:  # a write could create the topic if it does not exist
                raise StateUnwritable(self._why_unreadable)
            self._awaited = awaited
            try:
                self._write(changes, deadline)
                for each in awaited.values():
                    if not each.is_read.wait(max(0.0, deadline - time.monotonic())):
                        raise StateUnwritable(
                            f"state.topic {self._topic}: written, and not read back within {seconds:.0f} s; it takes "
                            "effect when the topic can be read"
                        )
                    if each.why_ineffective is not None:
                        raise StateUnwritable(f"state.topic {self._topic}: {each.why_ineffective}", is_temporary=False)
            finally:
                self._awaited = {}

    def _delete_settings(self, changes: Sequence[StateChange]) -> None:
        """Write changes without waiting for them, unless another change is being written now."""
        if not changes or not self._writing.acquire(blocking=False):
            return
        try:
            self._write(changes, time.monotonic() + REQUEST_SECONDS)
        except StateUnwritable as error:
            self._log.warning("settings of deleted topics not deleted", topic=self._topic, reason=str(error))
        finally:
            self._writing.release()

    def _write(self, changes: Sequence[StateChange], deadline: float) -> None:
        results: list[DeliveryFailure | None] = []
        try:
            for change in changes:
                self._writer.write(self._topic, key_of(change.operation), encode(change), [], results.append)
            while len(results) < len(changes) and time.monotonic() < deadline:
                self._writer.serve(_POLL_SECONDS)
        except RecordNotAccepted as error:
            why = f"state.topic {self._topic} cannot be written: {error}"
            raise StateUnwritable(why, is_temporary=not error.is_lasting) from None
        failure = next((each for each in results if each is not None), None)
        if failure is None and len(results) < len(changes):
            failure = DeliveryFailure("no broker has confirmed it in time")
        if failure is not None:
            why = f"state.topic {self._topic} cannot be written: {failure.reason}"
            raise StateUnwritable(why, is_temporary=not failure.is_lasting)

    def _run(self) -> None:
        if self._file is not None:
            self._take_snapshot(self._file)
        while not self._ends.is_set():
            try:
                self._read_for_ever()
            except _Unreadable as error:
                if str(error) != self._logged_error:
                    self._logged_error = str(error)
                    self._log.warning("state topic not read", topic=self._topic, reason=self._logged_error)
                self._report_unreadable(str(error))
            except Exception as error:
                self._log.error("internal error: the state topic is not read", exc_info=error)
                self._report_unreadable(f"internal error: {type(error).__name__}")
            self._ends.wait(_AGAIN_SECONDS)

    def _take_snapshot(self, file: SnapshotFile) -> None:
        try:
            self._known = file.read()
        except SnapshotUnreadable as error:
            self._log.warning("state snapshot unusable", reason=str(error))
            return
        self._on_state(self._known.state)
        self._report_unreadable("not read yet")
        self._status.end(Condition.STATE_UNKNOWN)

    def _read_for_ever(self) -> None:
        """Read until `close`. Raises _Unreadable."""
        import confluent_kafka  # noqa: PLC0415  # the extra `topic`

        try:
            consumer = connected(self._upstream, lambda settings: confluent_kafka.Consumer(settings | _READER))
            admin = admin_client(self._upstream)
        except TopicUnavailable as error:
            raise _Unreadable(str(error)) from None
        try:
            self._read(consumer, admin, partial(self._look, consumer, admin))
        finally:
            with suppress(Exception):  # the important error is already being raised
                consumer.close()

    def _look(self, consumer: Any, admin: Any) -> tuple[str, int]:
        """Return the topic's id and its end offset. Raises _Unreadable."""
        import confluent_kafka  # noqa: PLC0415  # the extra `topic`

        try:
            found = describe(admin, self._topic)
            partition = confluent_kafka.TopicPartition(self._topic, 0)
            _, end = consumer.get_watermark_offsets(partition, timeout=REQUEST_SECONDS)
        except TopicUnavailable as error:
            raise _Unreadable(str(error)) from None
        except confluent_kafka.KafkaException as error:
            raise _Unreadable(str(error.args[0].str())) from None
        if found.partitions != 1:
            raise _Unreadable(f"it has {found.partitions} partitions, but must have one")
        return found.topic_id, end

    def _read(self, consumer: Any, admin: Any, look: Callable[[], tuple[str, int]]) -> None:
        """Apply records as they arrive.

        No state is put in force before the end of the topic is reached, because an older state is worse than the known
        one. Raises _Unreadable.
        """
        import confluent_kafka  # noqa: PLC0415  # the extra `topic`

        topic_id, end = look()
        state = AgreedState()
        if self._known is not None and self._known.topic_id == topic_id and self._known.state.offset <= end:
            state = self._known.state
        elif self._known is not None:
            self._log.warning("state topic was recreated", topic=self._topic, known=self._known.topic_id, now=topic_id)
        start = state.offset or confluent_kafka.OFFSET_BEGINNING
        consumer.assign([confluent_kafka.TopicPartition(self._topic, 0, start)])
        is_at_end = False
        look_at = time.monotonic() + _LOOK_SECONDS
        while not self._ends.is_set():
            applied: dict[str, str | None] = {}
            arrived = _arrived(consumer)
            for message in arrived:
                error = message.error()
                if error is None:
                    state = self._after(state, message.offset(), message.value(), applied)
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    is_at_end = True
                elif stops_reading(error):
                    raise _Unreadable(str(error.str()))
            if arrived and is_at_end:
                self._put_in_force(topic_id, state, applied)
            if time.monotonic() >= look_at:
                topic_id_now, end = look()
                if topic_id_now != topic_id or end < state.offset:
                    raise _Unreadable("it was deleted and recreated")
                self._put_in_force(topic_id, state, {})
                self._delete_settings(self._deleted_topics(admin, state.settings))
                look_at = time.monotonic() + _LOOK_SECONDS

    def _after(
        self, state: AgreedState, offset: int, value: bytes | None, applied: dict[str, str | None]
    ) -> AgreedState:
        """Return the state after a record. Add its change to `applied`, with the reason if it has no effect."""
        try:
            change = decode(value)
        except UnreadableChange as error:
            why = str(error)
        else:
            try:
                after = state.after(change, offset)
            except StateFull as error:
                why = applied[change.id] = str(error)
            else:
                if self._known is not None:
                    self._on_change(change, state)
                applied[change.id] = None
                return after
        self._status.begin(
            Condition.STATE_RECORD_INVALID,
            f"state.topic {self._topic}, offset {offset}: {why}; the record has no effect",
        )
        return state.skipping(offset)

    def _put_in_force(self, topic_id: str, state: AgreedState, applied: Mapping[str, str | None]) -> None:
        is_new = self._known is None or self._known.state != state
        self._known = StateSnapshot(topic_id, self._now_ms(), state)
        if is_new:
            self._on_state(state)
            self._log.info("state applied", topic=self._topic, offset=state.offset, suspensions=len(state.suspensions))
        if self._on_read is not None:
            self._on_read()
            self._on_read = None
        for change_id, why_ineffective in applied.items():
            if awaited := self._awaited.get(change_id):
                awaited.why_ineffective = why_ineffective
                awaited.is_read.set()
        self._why_unreadable, self._logged_error = None, ""
        self._status.end(Condition.STATE_UNKNOWN)
        self._status.end(Condition.STATE_UNREADABLE)
        self._is_unsaved = self._is_unsaved or is_new
        if time.monotonic() - self._saved_at > (self._save_pause if self._is_unsaved else _SAVE_SECONDS):
            self._save(self._known)

    def _save(self, known: StateSnapshot) -> None:
        began, self._is_unsaved = time.monotonic(), False
        self._saved_at = began
        if self._file is None:
            return
        try:
            self._file.write(known)
        except OSError as error:
            detail = f"state.snapshot_file cannot be written: {error.strerror}"
            self._status.begin(Condition.STATE_SNAPSHOT_FAILING, detail)
        else:
            self._status.end(Condition.STATE_SNAPSHOT_FAILING)
        self._saved_at = time.monotonic()
        self._save_pause = _PAUSE_FOR_SAVING * (self._saved_at - began)

    def _report_unreadable(self, why: str) -> None:
        self._why_unreadable = f"state.topic {self._topic} cannot be read: {cut(printable(why))}"
        if self._known is None:
            self._status.begin(Condition.STATE_UNKNOWN, self._why_unreadable)
            return
        if self._is_unsaved:
            self._save(self._known)
        detail = f"{self._why_unreadable}; the state of {time_text(self._known.read_at_ms)} is in force"
        self._status.begin(Condition.STATE_UNREADABLE, detail)


def _arrived(consumer: Any) -> list[Any]:
    """Return the messages that have arrived, or the next one within a fifth of a second.

    As a result, changes that were written together are put in force together.
    """
    messages = []
    message = consumer.poll(_POLL_SECONDS)
    while message is not None:
        messages.append(message)
        if len(messages) >= _MOST_TOGETHER:
            break
        message = consumer.poll(0)
    return messages
