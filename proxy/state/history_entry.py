"""Entries of the change history and their form as records.

An entry contains the author, the change, the time, and the proxies that applied it. Every proxy writes its own record
about a change that it has applied, so an entry does not depend on the proxy that made the change. The records about one
change contain its id, and are shown as one entry.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.state.agreed_state import AgreedState
from sluicegate.proxy.state.change import (
    MAX_RECORD_BYTES,
    Actor,
    DeleteTopicSetting,
    SettingOperation,
    SetTopicSetting,
    StateChange,
    SuspendEnforcement,
    UnreadableChange,
    actor_of,
    content_of,
    text_of,
    time_of,
)
from sluicegate.proxy.state.settings_table import SettingsTable
from sluicegate.proxy.state.suspension import ALL_TOPICS, time_text

_MOST_LINES = 20
_LINE_CHARACTERS = 300


class ChangeEffect(StrEnum):
    """A change's effect on producers."""

    STRICTER = "stricter"
    LOOSER = "looser"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Taken:
    """A proxy has put a change in force at `time_ms` (Unix time, ms)."""

    proxy: str
    time_ms: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One change. `lines` describe what changed and its effect.

    `taken` lists the proxies that applied it, in order.
    """

    id: str
    time_ms: int
    actor: Actor
    what: str
    lines: tuple[tuple[ChangeEffect, str], ...]
    taken: tuple[Taken, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object for the API."""
        return {
            "id": self.id,
            "time_ms": self.time_ms,
            "actor": {"name": self.actor.name, "address": self.actor.address},
            "what": self.what,
            "changes": [{"effect": effect.value, "text": text} for effect, text in self.lines],
            "taken": [{"proxy": each.proxy, "time_ms": each.time_ms} for each in self.taken],
        }


def entry_of(change: StateChange, before: AgreedState, taken: Taken) -> Entry:
    """Create the entry for a change of the state. `before` was in force before it."""
    operation = change.operation
    if isinstance(operation, SetTopicSetting | DeleteTopicSetting):
        lines = _setting_lines(operation, before.settings)
        what = f"topic setting {operation.key} of {operation.topic}"
        changed = _bounded((ChangeEffect.CHANGED, line) for line in lines)
        return Entry(change.id, change.time_ms, change.actor, what, changed, (taken,))
    topic = operation.topic or ALL_TOPICS
    was = [str(each) for each in before.suspensions if operation.topic in (None, each.topic)]
    if isinstance(operation, SuspendEnforcement):
        what, effect = f"suspend {topic}", ChangeEffect.LOOSER
        lines = [f"enforcement of {topic} is suspended until {time_text(operation.until_ms)}: {operation.reason}"]
    else:
        what, effect = f"resume {topic}", ChangeEffect.STRICTER
        lines = [f"enforcement of {topic} is resumed"]
    lines += [f"before: {text}" for text in was] or ["before: not suspended"]
    return Entry(change.id, change.time_ms, change.actor, what, _bounded((effect, line) for line in lines), (taken,))


def _setting_lines(operation: SettingOperation, table: SettingsTable) -> list[str]:
    known = table.of(operation.topic)
    was = None if known is None else known.values.get(operation.key)
    before = "before: not set" if was is None else f"before: {was}"
    if isinstance(operation, SetTopicSetting):
        return [f"{operation.key} of {operation.topic} is {operation.value}", before]
    return [f"{operation.key} of {operation.topic} is not set", before]


def _bounded(lines: Iterable[tuple[ChangeEffect, str]]) -> tuple[tuple[ChangeEffect, str], ...]:
    every = [(effect, str(cut(line, _LINE_CHARACTERS))) for effect, line in lines]
    more = len(every) - _MOST_LINES
    return tuple(every if more <= 0 else [*every[:_MOST_LINES], (ChangeEffect.CHANGED, f"and {more} more")])


def encode(entry: Entry) -> bytes:
    """Return the value of the record that one proxy writes about an entry."""
    return json.dumps({"version": 1, **entry.as_json()}).encode()


def decode(value: bytes | None) -> Entry:
    """Return the entry in a record value. Raises UnreadableChange."""
    content = content_of(value, 4 * MAX_RECORD_BYTES)
    try:
        lines = [
            (ChangeEffect(each["effect"]), text_of(each, "text")) for each in content["changes"][: _MOST_LINES + 1]
        ]
        (taken,) = content["taken"]
        return Entry(
            text_of(content, "id"),
            time_of(content, "time_ms"),
            actor_of(content),
            text_of(content, "what"),
            tuple(lines),
            (Taken(text_of(taken, "proxy"), time_of(taken, "time_ms")),),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableChange(f"not an entry: {type(error).__name__}") from None


def merged(entries: Iterable[Entry]) -> list[Entry]:
    """Return one entry per change, newest first, with all proxies that applied it."""
    found: dict[str, Entry] = {}
    for each in entries:
        known = found.get(each.id)
        if known is None:
            found[each.id] = each
        else:
            others = {taken.proxy for taken in known.taken}
            taken = (*known.taken, *(taken for taken in each.taken if taken.proxy not in others))
            found[each.id] = replace(known, taken=tuple(sorted(taken, key=lambda one: one.time_ms)))
    return sorted(found.values(), key=lambda entry: entry.time_ms, reverse=True)


def entry_of_reload(id_: str, time_ms: int, actor: Actor, changes: Mapping[str, list[str]], proxy: str) -> Entry:
    """Create the entry for policies that a proxy has reloaded from files. `changes` contains lines by their effect."""
    lines = _bounded((effect, line) for effect in ChangeEffect for line in changes.get(effect.value, ()))
    return Entry(id_, time_ms, actor, "policies", lines, (Taken(proxy, time_ms),))
