"""Replaces values and headers of single records of a batch; every other byte of its payload stays.

A record (KIP-98): length varint | attributes int8 | timestamp_delta varlong | offset_delta varint | key | value |
headers. Only the length of a changed record, and the batch's length and CRC, follow from the change.
"""

import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sluicegate.protocol.integers import read_unsigned_varint, signed_varint, unsigned_varint
from sluicegate.protocol.records.columns import Columns, read_columns, read_headers

Header = tuple[bytes, bytes | None]


class CannotRewrite(Exception):
    """The payload is not exactly the stated records, or grows beyond the allowed size; the text says which."""


@dataclass(frozen=True, slots=True)
class Change:
    """The new parts of one record. `value`: the new value; `headers`: all headers in the format of a record, starting
    with their count. None: unchanged.
    """

    value: bytes | None = None
    headers: bytes | None = None


class RecordTable:
    """The records of a plain payload by position. Raises CannotRewrite if it is not exactly `count` records."""

    def __init__(self, data: memoryview, count: int, base_timestamp: int) -> None:
        self.data = data
        self.count = count
        offsets, times, key_at, key_size, value_at, value_size, headers_at, headers_size = (
            array("q", bytes(8 * count)) for _ in range(8)
        )
        columns = Columns(offsets, times, key_at, key_size, value_at, value_size, headers_at, headers_size)
        read = read_columns(data, 0, len(data), count, 0, base_timestamp, columns, 0)
        if read < count or (count and headers_at[-1] + headers_size[-1] != len(data)):
            raise CannotRewrite("its payload is not exactly its records")
        self.timestamps = times
        self.key_sizes = key_size
        self._key_at, self._value_at, self._value_size = key_at, value_at, value_size
        self._headers_at, self._headers_size = headers_at, headers_size

    def value(self, index: int) -> bytes | None:
        """Return the value of a record; None for null."""
        size, at = self._value_size[index], self._value_at[index]
        return None if size < 0 else bytes(self.data[at : at + size])

    def headers(self, index: int) -> list[Header]:
        """Return the headers of a record. Raises CannotRewrite if they do not fill their place."""
        found = read_headers(self.data, self._headers_at[index], self._end(index))
        if found is None:
            raise CannotRewrite(f"the headers of record {index} do not follow the format")
        return found

    def with_more_headers(self, index: int, more: list[Header]) -> bytes:
        """Return the headers of a record with others after them."""
        count = len(self.headers(index))
        _, at = read_unsigned_varint(self.data, self._headers_at[index])
        return b"".join((signed_varint(count + len(more)), self.data[at : self._end(index)], *map(encoded, more)))

    def with_a_header_like(self, name: re.Pattern[bytes]) -> Iterator[int]:
        """Yield the records whose headers have bytes that match `name`."""
        if name.search(self.data) is None:
            return
        for index in range(self.count):
            if name.search(self.data, self._headers_at[index], self._end(index)) is not None:
                yield index

    def rewritten(self, changes: Mapping[int, Change], most_bytes: int) -> bytearray:
        """Return the payload with changed records. Raises CannotRewrite if it exceeds `most_bytes`."""
        data = self.data
        payload = bytearray()
        copied = 0
        for index in sorted(changes):
            change = changes[index]
            start, end = self._end(index - 1) if index else 0, self._end(index)
            _, body = read_unsigned_varint(data, start)
            value_from, headers_from = self._key_at[index] + max(0, self.key_sizes[index]), self._headers_at[index]
            value = data[value_from:headers_from] if change.value is None else _sized(change.value)
            headers = data[headers_from:end] if change.headers is None else change.headers
            length = value_from - body + len(value) + len(headers)
            payload += data[copied:start]
            payload += signed_varint(length)
            payload += data[body:value_from]
            payload += value
            payload += headers
            copied = end
            if len(payload) + len(data) - copied > most_bytes:
                raise CannotRewrite(f"its payload would exceed {most_bytes} bytes")
        payload += data[copied:]
        return payload

    def _end(self, index: int) -> int:
        return int(self._headers_at[index] + self._headers_size[index])


def encoded_headers(headers: list[Header]) -> bytes:
    """Return headers in the format of a record, starting with their count."""
    return signed_varint(len(headers)) + b"".join(map(encoded, headers))


def encoded(header: Header) -> bytes:
    """Return one header in the format of a record."""
    name, value = header
    return _sized(name) + (signed_varint(-1) if value is None else _sized(value))


def _sized(data: bytes) -> bytes:
    return unsigned_varint(len(data) << 1) + data
