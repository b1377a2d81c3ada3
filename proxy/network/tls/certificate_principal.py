"""The principal of a client's certificate, as brokers name it: the subject in the form of RFC 2253 that Java writes."""

import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from cryptography import x509

_SHORT_NAMES = {
    "commonName": "CN",
    "organizationalUnitName": "OU",
    "organizationName": "O",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_HEADER_BYTES = 2
_LONG_FORM = 0x80

_Subject = tuple[tuple[tuple[str, str], ...], ...]


def principal_of(handshake: ssl.SSLObject) -> str | None:
    """Return the principal of a client's certificate in Kafka's default form; None without a certificate.

    Attributes that RFC 2253 has no keyword for, as an e-mail address, are an OID and the value's encoding in
    hexadecimal digits.
    """
    certificate = handshake.getpeercert()
    if not certificate:
        return None
    subject = cast(_Subject, certificate.get("subject", ()))
    if all(key in _SHORT_NAMES for rdn in subject for key, _ in rdn):
        parts = ["+".join(f"{_SHORT_NAMES[key]}={_escaped(value)}" for key, value in rdn) for rdn in subject]
    else:
        parts = list(_with_oids(subject, handshake.getpeercert(True) or b""))
    return "User:" + ",".join(reversed(parts))


def _with_oids(subject: _Subject, certificate: bytes) -> Iterator[str]:
    """Yield the parts of a subject that has other attributes, in order."""
    from cryptography import x509  # noqa: PLC0415  # 8 MB only for such subjects

    encoded = x509.load_der_x509_certificate(certificate).subject
    for rdn, attributes in zip(subject, encoded.rdns, strict=True):
        names = []
        for (key, value), attribute in zip(rdn, attributes, strict=True):
            if key in _SHORT_NAMES:
                names.append(f"{_SHORT_NAMES[key]}={_escaped(value)}")
            else:
                names.append(f"{attribute.oid.dotted_string}=#{_encoding_of(attribute).hex()}")
        yield "+".join(names)


def _encoding_of(attribute: "x509.NameAttribute[str | bytes]") -> bytes:
    """Return the DER encoding of an attribute's value: the second element of the only one in a name of its own."""
    from cryptography import x509  # noqa: PLC0415  # 8 MB only for such subjects

    pair = _content(_content(_content(x509.Name([attribute]).public_bytes())))
    return pair[_HEADER_BYTES + pair[1] :]  # after the OID, which has fewer than 128 bytes


def _content(element: bytes) -> bytes:
    """Return the content of a DER element."""
    size = element[1]
    return element[_HEADER_BYTES + (size & ~_LONG_FORM if size & _LONG_FORM else 0) :]


def _escaped(value: str) -> str:
    """Escape a value as Java does, which escapes more than RFC 2253 requires."""
    escaped = "".join(f"\\{char}" if char in ',=+<>#;"\\' else char for char in value)
    inner = escaped.strip(" ")
    before, after = len(escaped) - len(escaped.lstrip(" ")), len(escaped) - len(escaped.rstrip(" "))
    return "\\ " * before + inner + "\\ " * (after if inner else 0)
