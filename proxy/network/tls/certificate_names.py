"""The names in a client's certificate."""

import ssl
from typing import cast

_KINDS = frozenset({"DNS", "email", "URI", "IP Address"})
_Subject = tuple[tuple[tuple[str, str], ...], ...]


def names_of(handshake: ssl.SSLObject) -> tuple[str, ...]:
    """The subject's common names, and the alternative names that are hosts, mail addresses, URIs or addresses; none
    without a certificate.
    """
    certificate = handshake.getpeercert()
    if not certificate:
        return ()
    subject = cast(_Subject, certificate.get("subject", ()))
    alternative = cast(tuple[tuple[str, str], ...], certificate.get("subjectAltName", ()))
    common = (value for attributes in subject for key, value in attributes if key == "commonName")
    return (*common, *(value for kind, value in alternative if kind in _KINDS))
