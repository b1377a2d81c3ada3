"""Builds distinguished names of certificates in DER, and returns Java's form of them (X500Principal.getName)."""

from base64 import b64decode
from collections.abc import Sequence

from tests.oracle.java_program import java_command, run_java
from tests.oracle.kafka_java import KAFKA_NEW, ROOT, kafka_folder

SEQUENCE, SET, OID = 0x30, 0x31, 0x06
STRING_TYPES = {
    "UTF8String": 0x0C,
    "NumericString": 0x12,
    "PrintableString": 0x13,
    "T61String": 0x14,
    "IA5String": 0x16,
    "VisibleString": 0x1A,
    "GeneralString": 0x1B,
    "UniversalString": 0x1C,
    "BMPString": 0x1E,
}
"""The tags of the string types that a name's attributes can have (X.680)."""
TYPES = {
    "CN": bytes.fromhex("550403"),
    "SERIALNUMBER": bytes.fromhex("550405"),
    "C": bytes.fromhex("550406"),
    "L": bytes.fromhex("550407"),
    "ST": bytes.fromhex("550408"),
    "STREET": bytes.fromhex("550409"),
    "O": bytes.fromhex("55040a"),
    "OU": bytes.fromhex("55040b"),
    "T": bytes.fromhex("55040c"),
    "GIVENNAME": bytes.fromhex("55042a"),
    "UID": bytes.fromhex("0992268993f22c640101"),
    "DC": bytes.fromhex("0992268993f22c640119"),
    "emailAddress": bytes.fromhex("2a864886f70d010901"),
    "1.3.6.1.4.1.99999.7": bytes.fromhex("2b06010401868d1f07"),
    "2.999.1": bytes.fromhex("883701"),
}
"""The content of the attributes' object identifiers."""


def der_element(tag: int, content: bytes) -> bytes:
    """Return a DER element (X.690)."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(digits))) + digits + content


def name_attribute(kind: str, tag: int, value: bytes) -> bytes:
    """Return one attribute of a name; `kind` is a key of TYPES."""
    return der_element(SEQUENCE, der_element(OID, TYPES[kind]) + der_element(tag, value))


def distinguished_name(*parts: Sequence[bytes]) -> bytes:
    """Return a distinguished name of these parts (RDNs), each of one attribute or several."""
    return der_element(SEQUENCE, b"".join(der_element(SET, b"".join(part)) for part in parts))


def written_by_java(names: Sequence[bytes]) -> list[str | None]:
    """Return each name as Java writes it; None if Java does not accept it."""
    command = java_command(kafka_folder(KAFKA_NEW), str(ROOT / "tests/oracle/SubjectNames.java"))
    lines = run_java(command, "\n".join(each.hex() for each in names) + "\n").split("\n")[: len(names)]
    return [None if line == "invalid" else b64decode(line).decode() for line in lines]
