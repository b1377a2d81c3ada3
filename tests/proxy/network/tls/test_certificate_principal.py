"""Subjects are formatted as Java's X500Principal.getName() does it, for every string type and content."""

import random
import ssl
from contextlib import suppress
from itertools import product

import pytest

from sluicegate.proxy.network.tls.certificate_principal import name_of, principal_of
from tests.oracle.subject_names import (
    SEQUENCE,
    STRING_TYPES,
    TYPES,
    der_element,
    distinguished_name,
    name_attribute,
    written_by_java,
)

_VALUES = (
    "etl",
    "",
    " ",
    "  two  ",
    "\retl\r",
    "\n\tetl\t\n",
    "#etl",
    " #etl ",
    'a,b+c=d<e>f;g"h\\i',
    "a\0b",
    "\0",
    "\0 etl \0",
    "Ärm İx",
    "日本語",
    "😀",
    "1234",
    "a'b(c)d+e,f-g.h/i:j?k",
    "*@_&$%!|~`^{}[]",
    "\x01\x7f\x85",
    "x" * 200,
)
_UTF_8_PARTS = bytes.fromhex("41 7f 80 8f 90 9f a0 bf c0 c1 c2 c3 df e0 e2 ec ed ee ef f0 f1 f4 f5 f8 ff")


def _encoded(kind: str, value: str) -> bytes:
    match kind:
        case "BMPString":
            return value.encode("utf-16-be")
        case "UniversalString":
            return value.encode("utf-32-be")
        case "T61String":
            return value.encode("latin-1", "replace")
    return value.encode()


def _singles() -> list[bytes]:
    """Each type of string with each value; also values that are not of their type, or UTF-8 of any kind."""
    found = [
        name_attribute("CN", tag, _encoded(kind, value))
        for (kind, tag), value in product(STRING_TYPES.items(), _VALUES)
    ]
    chance = random.Random(1)
    found += [
        name_attribute("O", tag, bytes(chance.choices(_UTF_8_PARTS, k=chance.randint(1, 6))))
        for tag in STRING_TYPES.values()
        for _ in range(200)
    ]
    found += [
        name_attribute(kind, tag, _encoded(word, "a b")) for kind, (word, tag) in product(TYPES, STRING_TYPES.items())
    ]
    found += [
        name_attribute("CN", 0x02, b"\x05"),
        name_attribute("CN", 0x04, b"etl"),
        name_attribute("OU", 0x03, b"\0etl"),
    ]
    return found


def _names() -> list[bytes]:
    chance = random.Random(58)
    singles = _singles()
    several = [[chance.sample(singles, chance.randint(1, 3)) for _ in range(chance.randint(1, 4))] for _ in range(500)]
    return [
        distinguished_name(),
        *(distinguished_name([each]) for each in singles),
        *(distinguished_name(*parts) for parts in several),
    ]


class _Peer(ssl.SSLObject):
    """A handshake with a peer that has this certificate."""

    def __new__(cls, _: bytes | None) -> "_Peer":
        return object.__new__(cls)

    def __init__(self, certificate: bytes | None) -> None:
        self._certificate = certificate

    def getpeercert(self, binary_form: bool = False) -> bytes | None:  # type: ignore[override]
        assert binary_form
        return self._certificate


def test_subject_format_matches_java() -> None:
    names = _names()

    expected = written_by_java(names)

    assert len(names) > 800
    assert [name_of(each) for each in names] == expected


@pytest.mark.parametrize("tag", STRING_TYPES.values(), ids=STRING_TYPES)
def test_principal_is_certificate_subject_for_every_asn1_string_type(tag: int) -> None:
    """The other fields are like those of a real certificate, from which Java reads the same subject."""
    subject = distinguished_name([name_attribute("CN", tag, b"etl\0")], [name_attribute("emailAddress", tag, b"a@b")])
    for version in (b"", der_element(0xA0, der_element(0x02, b"\x02"))):
        fields = (
            version
            + der_element(0x02, b"\x07")
            + der_element(SEQUENCE, b"")
            + distinguished_name()
            + der_element(SEQUENCE, b"")
            + subject
        )
        certificate = der_element(
            SEQUENCE,
            der_element(SEQUENCE, fields + der_element(SEQUENCE, b""))
            + der_element(SEQUENCE, b"")
            + der_element(0x03, b"\0"),
        )

        assert principal_of(_Peer(certificate)) == f"User:{name_of(subject)}"


def test_principal_is_none_without_certificate() -> None:
    assert principal_of(_Peer(None)) is None


def test_malformed_der_raises_only_value_error() -> None:
    whole = distinguished_name([name_attribute("CN", 0x0C, b"etl")], [name_attribute("emailAddress", 0x16, b"a@b")])
    chance = random.Random(58)
    for _ in range(3000):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        for text in (bytes(damaged), bytes(damaged[: chance.randrange(len(damaged))])):
            with suppress(ValueError):
                name_of(text)
            with suppress(ValueError):
                principal_of(_Peer(text))
