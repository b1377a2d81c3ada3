"""Provides a test for authors of rules: `check_rule` evaluates a rule on hostile and generated records.

The proxy does not use it. docs/extending.md and docs/rules.md show how to call it.
"""

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Protocol

from sluicegate.protocol.records.record_batch import HEADER_BYTES
from sluicegate.protocol.records.scan import is_compiled
from sluicegate.protocol.records.writing import NewRecord, write_batch
from sluicegate.validation.rules.custom_rule import old_names_of
from sluicegate.validation.rules.native.questions import HasNativeCheck, ordinary_questions
from sluicegate.validation.rules.rule import Client, Header, Outage, Part, RuledRecord, SchemaError

_NOW_MS = 1_795_000_000_000
_WINDOW_BYTES = 16 << 20
_CLIENT = Client("127.0.0.1:50000", "app", "librdkafka", "2.6.0", "User:app")
_MUTATIONS_OF_EACH = 60
_DEPTHS = (1, 2, 5, 31, 32, 33, 64, 65, 99, 100, 101, 128, 129, 1000)

HOSTILE: Sequence[bytes | None] = (
    None,
    *(b"\x00" * size for size in (*range(12), 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 1000, 65_536, 65_537)),
    *(b"a" * size for size in (*range(1, 12), 15, 16, 17, 31, 32, 33, 63, 64, 65, 99, 100, 101, 127, 128, 129, 1000)),
    *map(bytes, ([byte] for byte in range(256))),
    # Malformed UTF-8: overlong forms, surrogates, a value past U+10FFFF, truncated characters (RFC 3629).
    *(b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf4\x90\x80\x80"),
    *(b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xef\xbb\xbf{}", b"\xff\xfe{\x00}\x00", b"text\xff", b'"\xc3\x28"'),
    "naïve 漢字 😀 \u2028".encode(),
    # JSON, and bytes that only resemble it (RFC 8259).
    *(b"{}", b"[]", b"null", b"true", b"0", b"-0", b"1e400", b"01", b"+1", b".5", b"1.", b"NaN", b"Infinity", b"-"),
    *(b"{} {}", b"{}\x00", b" {} ", b"[1,]", b'{"a":1,}', b'{"a":1,"a":2}', b"{'a':1}", b"{a:1}", b"[1 2]", b"tru"),
    *(b'"\\ud800"', b'"\\u12"', b'"\\x"', b'"a\nb"', b'"\x00"', b'"', b"[", b"{", b'{"a"', b"/*c*/{}", b"\v{}"),
    *(b"[" * depth + b"]" * depth for depth in _DEPTHS),
    *(b'{"a":' * depth + b"1" + b"}" * depth for depth in _DEPTHS),
    # A schema id before data, and lengths beyond the end, as in Avro and Protobuf.
    *(b"\x00\x00\x00\x00\x01", b"\x00\x00\x00\x00\x01{}", b"\x01\x00\x00\x00\x01{}", b"\x00\x00\x00\x01"),
    b"\x0a\xff\x01",
    *(b"\x80" * 9 + b"\x01", b"\xff" * 10, b"\xff" * 11, b"\x02" * 40, b"\x7f" + b"a" * 10, b"\x01\x02\x00\x03"),
)  # fmt: skip
"""Keys and values that different readers often interpret differently."""
_HEADERS: Sequence[tuple[Header, ...]] = ((), ((b"tenant", b"acme"),), ((b"", None), (b"h", b"\xff"), (b"h", b"")))


class CheckedRule(Protocol):
    """A custom rule, or one of sluicegate's rules."""

    @property
    def parts(self) -> Part:
        """Return the parts that the rule reads."""

    @property
    def is_slow(self) -> bool:
        """Return whether a record may take more than about ten microseconds."""

    def fault(self, record: RuledRecord) -> str | None:
        """Return a record's fault, or None."""


def check_rule(rule: CheckedRule, examples: Sequence[bytes | None] = (), seed: int = 1) -> int:
    """Evaluate `rule` on records with HOSTILE keys and values, with `examples`, and with mutations of these.

    `examples` are keys or values that the rule accepts or nearly accepts, such as some of each allowed length. Raises
    AssertionError if the rule raises anything but Outage and SchemaError, returns anything but a string or None, or
    rejects a record that its `ordinary()` accepts. Returns the number of records that `ordinary()` accepted; 0 if the
    rule has none or no native code was compiled.
    """
    if old_names := old_names_of(rule):
        raise AssertionError(f"{type(rule).__name__} {old_names}")
    accepts = _native_check(rule)
    accepted = 0
    for batch in _batches(examples, Random(seed)):  # noqa: S311  # the same records in every run
        faults = [_fault(rule, record, at) for at, record in enumerate(batch)]
        if accepts is None:
            continue
        plain = write_batch(batch)[HEADER_BYTES:]
        if not accepts(bytes(plain), len(batch)):
            continue
        accepted += len(batch)
        for record, fault in zip(batch, faults, strict=True):
            if fault is not None:
                raise AssertionError(
                    f"{type(rule).__name__}.ordinary() accepts a record that fault() rejects: key "
                    f"{_shown(record.key)}, value {_shown(record.value)}, in a batch of {len(batch)}: {fault}. Such "
                    "records would be stored without a violation: ordinary() may accept less than the rule, never more"
                )
    return accepted


def _native_check(rule: CheckedRule) -> "AcceptsBatch | None":
    questions = ordinary_questions([rule]) if isinstance(rule, HasNativeCheck) else None
    if questions is None or not is_compiled():
        return None
    from sluicegate.validation.rules.native.contents import OrdinaryContents  # noqa: PLC0415  # it is compiled

    accepts: AcceptsBatch = OrdinaryContents(questions, _WINDOW_BYTES).accepts
    return accepts


class AcceptsBatch(Protocol):
    """A callable that returns whether native code accepts all records in a batch."""

    def __call__(self, records: bytes, count: int) -> bool: ...


def _fault(rule: CheckedRule, record: NewRecord, at: int) -> str | None:
    """Return the fault of a record that, as in the proxy, has only the parts that the rule reads."""
    parts = rule.parts
    seen = RuledRecord(
        "topic", 0, at, record.timestamp, record.key, record.value,
        record.headers if Part.HEADERS in parts else (), _CLIENT,
    )  # fmt: skip
    seen.key = record.key if Part.KEY in parts else None
    seen.value = record.value if Part.VALUE in parts else None
    where = f"{type(rule).__name__}.fault() for key {_shown(record.key)}, value {_shown(record.value)}"
    try:
        fault = rule.fault(seen)
    except (Outage, SchemaError) as error:
        return f"no verdict: {error}"
    except Exception as error:
        raise AssertionError(
            f"{where} raised {type(error).__name__}: {error}; clients can send any bytes, and the proxy "
            "rejects each such record"
        ) from error
    if fault is not None and not isinstance(fault, str):
        raise AssertionError(f"{where} returned {type(fault).__name__}, not a text or None")
    return fault


def _batches(examples: Sequence[bytes | None], chance: Random) -> Iterator[list[NewRecord]]:
    values = [*HOSTILE, *examples]
    given = [each for each in examples if each] or [each for each in HOSTILE if each is not None and len(each) > 1]
    values += [_mutated(each, given, chance) for each in given for _ in range(_MUTATIONS_OF_EACH)]
    values += [_json(chance) for _ in range(300)]
    kept = [*examples] or [b"k"]
    for value in values:
        headers = chance.choice(_HEADERS)
        yield [NewRecord(_NOW_MS, chance.choice(kept), value, headers)]
        yield [NewRecord(_NOW_MS, value, chance.choice(kept), headers)]
    for count in (2, 3, 7, 30, 31, 1001):
        yield [NewRecord(_NOW_MS, chance.choice(kept), chance.choice(kept)) for _ in range(count)]
        yield [NewRecord(_NOW_MS, chance.choice(kept), chance.choice(values)) for _ in range(min(count, 30))]


def _mutated(value: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    """Return slightly different bytes, some just within the limits of a rule and some just outside."""
    data = bytearray(value)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(7):
            case 0 if data:
                data[at % len(data)] ^= 1 << chance.randrange(8)
            case 1 if data:
                data[at % len(data)] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            case 2:
                del data[at:]
            case 3:
                del data[at : at + 1]
            case 4:
                data[at:at] = chance.choice((b"\x00", b" ", b"0", b'"', b"\xff", data[at : at + 4] or b"a"))
            case 5:
                data += chance.choice((b"\x00", b" ", b"}", b"a", chance.choice(others)))
            case _:
                other = chance.choice(others)
                data[at:] = other[chance.randrange(len(other) + 1) :]
    return bytes(data)


def _json(chance: Random, depth: int = 0) -> bytes:
    value = _value(chance, depth)
    return json.dumps(value, ensure_ascii=chance.random() < 0.5).encode(errors="surrogatepass")


def _value(chance: Random, depth: int) -> object:
    if depth > 3 or chance.random() < 0.5:
        return chance.choice((None, True, 0, -1, 7, 1.5, 10**30, -1e300, "", "a", "naïve", "x" * 40, "\ud800"))
    if chance.random() < 0.5:
        return [_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(("a", "b", "n", "id", "é")): _value(chance, depth + 1) for _ in range(chance.randrange(4))}


def _shown(part: bytes | None) -> str:
    return "null" if part is None else repr(part[:60]) + (f"… ({len(part)} bytes)" if len(part) > 60 else "")
