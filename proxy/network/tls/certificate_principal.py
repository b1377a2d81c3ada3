"""Derives the principal from a client's certificate as brokers do.

The principal is the subject in the RFC 2253 form that Java writes.
"""

import re
import ssl

from sluicegate.proxy.network.tls.der import DerElement, children_of, element_at

_KEYWORDS = {
    bytes.fromhex("550403"): "CN",
    bytes.fromhex("550406"): "C",
    bytes.fromhex("550407"): "L",
    bytes.fromhex("550408"): "ST",
    bytes.fromhex("550409"): "STREET",
    bytes.fromhex("55040a"): "O",
    bytes.fromhex("55040b"): "OU",
    bytes.fromhex("0992268993f22c640101"): "UID",
    bytes.fromhex("0992268993f22c640119"): "DC",
}
"""The keywords of RFC 2253 by the content bytes of their object identifiers.

Java writes every other attribute with its OID.
"""
# The tags of UTF8String, PrintableString, T61String, IA5String, GeneralString and BMPString. Java writes a value of any
# other type as hexadecimal digits.
_TEXTS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
_VERSION = 0xA0
_FIELDS_BEFORE_SUBJECT = 4  # the serial number, the signature algorithm, the issuer and the validity
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_NOT_UTF_8 = b"\xff"
_ESCAPED = str.maketrans({char: f"\\{char}" for char in ',=+<>#;"\\'} | {"\0": "\\00"})


def principal_of(handshake: ssl.SSLObject) -> str | None:
    """Return the principal of a client's certificate in Kafka's default form, or None without a certificate.

    Raises ValueError if the certificate is not DER. Brokers reject such a certificate too.
    """
    certificate = handshake.getpeercert(True)
    return f"User:{name_of(_subject_in(certificate))}" if certificate else None


def name_of(subject: bytes) -> str:
    """Return a distinguished name (DER) in the form that `X500Principal.getName()` returns. Raises ValueError."""
    parts = ["+".join(map(_attribute, children_of(part))) for part in children_of(element_at(subject, 0))]
    return ",".join(reversed(parts))


def _subject_in(certificate: bytes) -> bytes:
    """Return the subject of a certificate (RFC 5280, 4.1). Raises ValueError."""
    to_be_signed, *_ = children_of(element_at(certificate, 0))
    fields = children_of(to_be_signed)
    at = _FIELDS_BEFORE_SUBJECT + (bool(fields) and fields[0].tag == _VERSION)
    if at >= len(fields):
        raise ValueError("a certificate without a subject")
    return fields[at].encoding


def _attribute(pair: DerElement) -> str:
    kind, value = children_of(pair)
    keyword = _KEYWORDS.get(kind.content)
    if keyword is None:
        return f"{_dotted(kind.content)}=#{value.encoding.hex()}"
    if value.tag not in _TEXTS:
        return f"{keyword}=#{value.encoding.hex()}"
    return f"{keyword}={_escaped(_decoded(value.content))}"


def _decoded(content: bytes) -> str:
    """Decode a string's content as Java does.

    Every type is decoded as UTF-8, and a surrogate becomes one replacement character.
    """
    return _SURROGATE.sub(_NOT_UTF_8, content).decode(errors="replace")


def _escaped(value: str) -> str:
    """Escape a value as Java does. Java escapes more than RFC 2253 requires."""
    escaped = value.translate(_ESCAPED)
    inner = escaped.strip(" \r")
    if not inner:
        return "".join(f"\\{char}" for char in escaped)
    before, _, after = escaped.partition(inner)
    return "".join(f"\\{char}" for char in before) + inner + "".join(f"\\{char}" for char in after)


def _dotted(content: bytes) -> str:
    """Return an object identifier in dotted digits (X.690, 8.19). Raises ValueError."""
    if not content or content[-1] & 0x80:
        raise ValueError("an incomplete object identifier")
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
