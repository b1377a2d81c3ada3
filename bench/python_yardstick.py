"""Runs a fixed amount of interpreted Python, whose cost distinguishes builds of Python.

The mix is that of the slow path: calls, attributes, small objects, dictionaries, bytes.
"""

import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Entry:
    index: int
    name: str
    data: bytes


def interpret(repetitions: int) -> None:
    """Repeat the same work."""
    for _ in range(repetitions):
        _once()


def _once() -> int:
    found: dict[str, list[_Entry]] = {}
    frame = struct.pack(">hihi", 1, 2, 3, 4) * 20
    for index in range(20):
        first, second, third, fourth = struct.unpack_from(">hihi", frame, index * 12)
        entry = _Entry(index, f"topic-{(first + second + third + fourth + index) % 5}", frame[index : index + 12])
        found.setdefault(entry.name, []).append(entry)
    total = 0
    for name, entries in sorted(found.items()):
        for entry in entries:
            if entry.name == name and entry.data:
                total += _weight(entry, len(entries))
    return total


def _weight(entry: _Entry, share: int) -> int:
    try:
        return entry.data[0] + entry.index // share
    except IndexError:
        return 0
