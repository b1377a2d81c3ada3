"""Compiles rules for requests and their clients from the configuration, as well as exemptions and quotas.

The rules cover acks, codec, idempotence, size, client id and software.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sluicegate.config import requests as keys
from sluicegate.config.quotas import Quota as QuotaKeys
from sluicegate.config.teams import ClientOwner
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.validation.requests.name_pattern import Exemption, NamePattern, OwnedClients
from sluicegate.validation.requests.quota import QuotaLimits
from sluicegate.validation.rules.rule import Client, Mode

_NUMBERS = re.compile(r"[0-9]{1,9}")
_MOST_NUMBERS = 4
_LOOKED_AT = 64


def numbers_in(version: str) -> tuple[int, ...]:
    """Return the numbers at the start of a version, without trailing zeros: 2.3.0 equals 2.3."""
    text = version[:_LOOKED_AT].split("-", maxsplit=1)[0].split("+", maxsplit=1)[0]
    numbers = [int(found) for found in _NUMBERS.findall(text)[:_MOST_NUMBERS]]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


@dataclass(frozen=True, slots=True)
class LeastVersion:
    """The minimum accepted version for clients with a matching software name."""

    name: NamePattern
    version: str

    def rejects(self, name: str | None, version: str | None) -> bool:
        """Return whether this software is too old. Return False for a client without a software name."""
        return self.name.matches(name) and numbers_in(version or "") < numbers_in(self.version)


_ACKS = {-1: "all", 0: "0", 1: "1"}


class SentBatch(NamedTuple):
    """The properties of a batch as it was sent. `size` is its size on the wire, in bytes."""

    acks: int
    codec: Codec
    is_idempotent: bool
    size: int


@dataclass(frozen=True, slots=True)
class RequestCheck:
    """A rule for requests. Conditions that are None or empty are not checked.

    `of_client` and `of_principal` select the clients to which the rule applies. Its topics are matched elsewhere.
    `acks` contains -1, 0 or 1, as in a request.
    """

    name: str
    mode: Mode = Mode.REJECT
    of_client: NamePattern | None = None
    of_principal: NamePattern | None = None
    acks: frozenset[int] | None = None
    codecs: frozenset[Codec] | None = None
    idempotent: bool = False
    client_id: NamePattern | None = None
    most_bytes: int | None = None
    software: tuple[LeastVersion, ...] = ()

    def concerns(self, client: Client) -> bool:
        """Return whether the rule applies to this client."""
        return (self.of_client is None or self.of_client.matches(client.client_id)) and (
            self.of_principal is None or self.of_principal.concerns_principal_of(client)
        )

    def fault(self, sent: SentBatch, client: Client) -> str | None:
        """Return the violation and the setting that fixes it, for the producer's developer.

        Return None without a violation.
        """
        faults = [*self._of_batch(sent), *self._of_client(client)]
        return "; ".join(faults) if faults else None

    def _of_batch(self, sent: SentBatch) -> list[str]:
        faults = []
        if self.acks is not None and sent.acks not in self.acks:
            wanted = " or ".join(_ACKS[acks] for acks in sorted(self.acks))
            faults.append(f"acks={_ACKS.get(sent.acks, sent.acks)} is not allowed for this topic; set acks={wanted}")
        if self.codecs is not None and sent.codec not in self.codecs:
            wanted = " or ".join(codec.name.lower() for codec in sorted(self.codecs, key=lambda codec: codec.value))
            faults.append(
                f"compression {sent.codec.name.lower()} is not allowed for this topic; set compression.type={wanted}"
            )
        if self.idempotent and not sent.is_idempotent:
            faults.append("only idempotent producers may write to this topic; set enable.idempotence=true")
        if self.most_bytes is not None and sent.size > self.most_bytes:
            faults.append(
                f"a batch of {sent.size} bytes; this topic allows at most {self.most_bytes}: set a lower batch.size"
            )
        return faults

    def _of_client(self, client: Client) -> list[str]:
        faults = []
        if self.client_id is not None and not self.client_id.matches(client.client_id):
            faults.append(
                f"the client id is not allowed for this topic; set a client.id that matches {self.client_id.pattern}"
            )
        for least in self.software:
            if least.rejects(client.software_name, client.software_version):
                found = f"{client.software_name} {client.software_version or 'of no version'}"
                faults.append(f"{found} is too old for this topic; use {least.version} or later")
        return faults


_ACKS_BY_KEY = {"all": -1, "1": 1, "0": 0}


def request_rule_of(rule: keys.RequestRule) -> RequestCheck:
    """Return the compiled rule. Its topics are not part of it."""
    return RequestCheck(
        rule.name,
        Mode(rule.mode),
        _pattern(rule.match.client_id),
        _pattern(rule.match.principal),
        None if rule.acks is None else frozenset(_ACKS_BY_KEY[word] for word in rule.acks),
        None if rule.codecs is None else frozenset(Codec[word.upper()] for word in rule.codecs),
        rule.idempotent,
        _pattern(rule.client_id),
        rule.max_batch_bytes,
        tuple(LeastVersion(NamePattern(one.name), one.min_version) for one in rule.software),
    )


def exemptions_of(exempt: Iterable[keys.Exempt]) -> tuple[Exemption, ...]:
    """Return the exemptions in the order of the configuration."""
    return tuple(
        Exemption(_pattern(one.principal), _pattern(one.client_id), tuple(map(NamePattern, one.topics or ())))
        for one in exempt
    )


def client_owners_of(owners: Iterable[ClientOwner]) -> tuple[OwnedClients, ...]:
    """Return the owners of clients in the order of the configuration."""
    return tuple(OwnedClients(_pattern(one.principal), _pattern(one.client_id), one.owner) for one in owners)


def quotas_of(quotas: Iterable[QuotaKeys]) -> tuple[QuotaLimits, ...]:
    """Return the quotas in the order of the configuration."""
    return tuple(
        QuotaLimits(
            one.name,
            _pattern(one.client_id),
            _pattern(one.principal),
            _pattern(one.topic),
            one.bytes_per_second,
            one.requests_per_second,
            one.connections,
        )
        for one in quotas
    )


def _pattern(text: str | None) -> NamePattern | None:
    return None if text is None else NamePattern(text)
