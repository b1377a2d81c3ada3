"""Contains Kafka's message definitions, and generates random values that follow them.

The definitions of three releases are stored here without their comments, so that tests that do not need Java run
everywhere. `.venv/bin/python -m tests.oracle.definitions` writes them from the kafka-clients jars, and
tests/protocol/test_stored_definitions.py compares the two. The definitions of other releases are read from their jars.
"""

import gzip
import json
import random
import re
import zipfile
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.oracle.kafka_java import KAFKA_NEW, KAFKA_NEWEST, KAFKA_OLD, kafka_folder
from tests.wire.batches import Rec, batch

_INTEGER_BITS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "int64": 64}


@dataclass(frozen=True)
class Versions:
    """A version range in Kafka's notation: `0+`, `3-7`, `2`, `none`."""

    low: int
    high: int

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high


def parse_versions(text: str | None) -> Versions:
    if not text or text == "none":
        return Versions(1, 0)
    if text.endswith("+"):
        return Versions(int(text[:-1]), 32767)
    low, _, high = text.partition("-")
    return Versions(int(low), int(high or low))


STORED = (KAFKA_NEWEST, KAFKA_NEW, KAFKA_OLD)
_NOT_STORED = frozenset({"about", "ignorable", "entityType"})


def definitions_file(release: str) -> Path:
    """Return the file with the definitions of a release."""
    return Path(__file__).with_name(f"kafka-{release}-messages.json.gz")


@cache
def message_definitions(release: str) -> dict[str, Any]:
    """Return the definitions of all messages of a Kafka release, by name."""
    if release not in STORED:
        return definitions_of_jar(release)
    found: dict[str, Any] = json.loads(gzip.decompress(definitions_file(release).read_bytes()))
    return found


def message_definition(release: str, name: str) -> dict[str, Any]:
    """Return the definition of a message in one Kafka release."""
    found: dict[str, Any] = message_definitions(release)[name]
    return found


def definitions_of_jar(release: str) -> dict[str, Any]:
    """Return the same from a release's jar, without comments."""
    jar = zipfile.ZipFile(kafka_folder(release) / f"kafka-clients-{release}.jar")
    names = [name for name in jar.namelist() if re.fullmatch(r"common/message/\w+\.json", name)]
    texts = (re.sub(r"^\s*//.*$", "", jar.read(name).decode(), flags=re.MULTILINE) for name in sorted(names))
    return {spec["name"]: _without_comments(spec) for spec in map(json.loads, texts)}


def store_definitions(release: str) -> None:
    """Write the definitions of a release from its jar."""
    text = json.dumps(definitions_of_jar(release), separators=(",", ":"))
    definitions_file(release).write_bytes(gzip.compress(text.encode(), mtime=0))


def _without_comments(spec: Any) -> Any:
    if isinstance(spec, dict):
        return {key: _without_comments(value) for key, value in spec.items() if key not in _NOT_STORED}
    return [_without_comments(value) for value in spec] if isinstance(spec, list) else spec


class RandomMessage:
    """Random values of a message in one version: `ours` with our names, `kafka` as in Kafka's JSON."""

    def __init__(self, release: str, name: str, version: int, seed: int, number: "Number | None" = None) -> None:
        self._random = random.Random(f"{name} {version} {seed}")
        self._number = number or random_integer
        self._version = version
        spec = message_definition(release, name)
        self._structs = {s["name"]: s["fields"] for s in spec.get("commonStructs", [])}
        self.ours, self.kafka = self._struct(spec["fields"])

    def _struct(self, fields: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
        ours: dict[str, Any] = {}
        kafka: dict[str, Any] = {}
        for spec in fields:
            if self._version not in parse_versions(spec["versions"]):
                continue
            name, camel = snake_case(spec["name"]), spec["name"][0].lower() + spec["name"][1:]
            tagged = self._version in parse_versions(spec.get("taggedVersions"))
            if tagged and self._random.random() < 0.4:
                continue  # the field keeps its default, which is not encoded
            value, shown = self._value(spec)
            if tagged and self._is_default(spec, value):
                continue
            ours[name] = value
            if spec["type"] == "records":
                kafka[camel + "SizeInBytes"] = 0 if value is None else len(value)
            else:
                kafka[camel] = shown
        return ours, kafka

    def _is_default(self, spec: dict[str, Any], value: Any) -> bool:
        """Return whether a tagged value is omitted because it is the default."""
        if isinstance(value, dict):
            fields = spec.get("fields") or self._structs[spec["type"]]
            return all(
                self._is_default(f, value[snake_case(f["name"])]) for f in fields if snake_case(f["name"]) in value
            )
        plain = {"bool": "false", "string": "", "uuid": bytes(16)}.get(spec["type"], "0")
        default = spec.get("default", plain)
        if value is None:
            return default == "null"
        return value in ([], default) or str(value).lower() == str(default).lower()

    def _value(self, spec: dict[str, Any]) -> tuple[Any, Any]:
        nullable = self._version in parse_versions(spec.get("nullableVersions"))
        if nullable and self._random.random() < 0.3 and spec["type"] != "records":
            return None, None
        kind: str = spec["type"]
        if kind.startswith("[]"):
            items = [
                self._value({**spec, "type": kind[2:], "nullableVersions": None})
                for _ in range(self._random.randint(0, 3))
            ]
            unique = self._distinct(items, spec)
            return [ours for ours, _ in unique], [kafka for _, kafka in unique]
        if kind in _INTEGER_BITS:
            number = self._number(self._random, spec["name"], _INTEGER_BITS[kind])
            return number, number
        match kind:
            case "bool":
                flag = self._random.random() < 0.5
                return flag, flag
            case "string":
                text = "".join(self._random.choices("abcXYZ.-_09é日", k=self._random.choice((0, 1, 7, 200))))
                return text, text
            case "bytes":
                data = self._random.randbytes(self._random.choice((0, 1, 300)))
                return data, b64encode(data).decode()
            case "uuid":
                data = self._random.randbytes(16)
                return data, urlsafe_b64encode(data).rstrip(b"=").decode()
            case "records":
                data = batch([Rec(self._random.randrange(2**41), value=self._random.randbytes(50)) for _ in range(3)])
                return data, None
        return self._struct(spec.get("fields") or self._structs[kind])

    def _distinct(self, items: list[tuple[Any, Any]], spec: dict[str, Any]) -> list[tuple[Any, Any]]:
        """Kafka stores arrays of structs with map keys as sets, which would drop equal keys."""
        keys = [snake_case(f["name"]) for f in spec.get("fields") or () if f.get("mapKey")]
        if not keys:
            return items
        return list({tuple(repr(ours.get(k)) for k in keys): (ours, kafka) for ours, kafka in items}.values())


Number = Callable[[random.Random, str, int], int]
"""Returns an integer for a field, given its name and its size in bits."""


def random_integer(chance: random.Random, _field: str, bits: int) -> int:
    """Return any integer, often an extreme."""
    top = 2 ** (bits - 1) - 1
    return chance.choice((0, 1, -1, top, -top - 1, chance.randint(-top, top)))


def snake_case(name: str) -> str:
    """`ThrottleTimeMs` -> `throttle_time_ms`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


if __name__ == "__main__":
    for each in STORED:
        store_definitions(each)
