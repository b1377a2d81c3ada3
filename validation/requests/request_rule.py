"""A rule about how a batch is sent, and by whom: acks, codec, idempotence, size, client id, software."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.validation.requests.name_pattern import NamePattern
from sluicegate.validation.rules.rule import Client, Mode

_NUMBERS = re.compile(r"[0-9]{1,9}")
_MOST_NUMBERS = 4
_LOOKED_AT = 64


def numbers_in(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with, zeros at the end left out: 2.3.0 is 2.3."""
    text = version[:_LOOKED_AT].split("-", maxsplit=1)[0].split("+", maxsplit=1)[0]
    numbers = [int(found) for found in _NUMBERS.findall(text)[:_MOST_NUMBERS]]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


@dataclass(frozen=True, slots=True)
class LeastVersion:
    """Clients whose software's name matches have at least this version."""

    name: NamePattern
    version: str

    def rejects(self, name: str | None, version: str | None) -> bool:
        """Whether this software is older; who has given no name is not asked."""
        return self.name.matches(name) and numbers_in(version or "") < numbers_in(self.version)


_ACKS = {-1: "all", 0: "0", 1: "1"}


class SentBatch(NamedTuple):
    """How a batch came: `size` in bytes, as it was sent."""

    acks: int
    codec: Codec
    is_idempotent: bool
    size: int


@dataclass(frozen=True, slots=True)
class RequestRule:
    """What is None or empty is not asked. `of_client` and `of_principal` say whom it concerns; topics were chosen
    before.

    `acks`: -1, 0 and 1, as in a request.
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
        """Whether it is asked of this client."""
        return (self.of_client is None or self.of_client.matches(client.client_id)) and (
            self.of_principal is None or self.of_principal.concerns_principal_of(client)
        )

    def complaint(self, sent: SentBatch, client: Client) -> str | None:
        """What is wrong and what to set, for who configures the producer; None: nothing is."""
        said = [*self._of_batch(sent), *self._of_client(client)]
        return "; ".join(said) if said else None

    def _of_batch(self, sent: SentBatch) -> list[str]:
        said = []
        if self.acks is not None and sent.acks not in self.acks:
            wanted = " or ".join(_ACKS[acks] for acks in sorted(self.acks))
            said.append(f"acks={_ACKS.get(sent.acks, sent.acks)} is not allowed here; set acks={wanted}")
        if self.codecs is not None and sent.codec not in self.codecs:
            wanted = " or ".join(codec.name.lower() for codec in sorted(self.codecs, key=lambda codec: codec.value))
            said.append(f"compression {sent.codec.name.lower()} is not allowed here; set compression.type={wanted}")
        if self.idempotent and not sent.is_idempotent:
            said.append("only idempotent producers may write here; set enable.idempotence=true")
        if self.most_bytes is not None and sent.size > self.most_bytes:
            said.append(
                f"a batch of {sent.size} bytes, at most {self.most_bytes} are allowed here; set batch.size lower"
            )
        return said

    def _of_client(self, client: Client) -> list[str]:
        said = []
        if self.client_id is not None and not self.client_id.matches(client.client_id):
            said.append(f"the client id is not as it must be here; set client.id to match {self.client_id.pattern}")
        for least in self.software:
            if least.rejects(client.software_name, client.software_version):
                found = f"{client.software_name} {client.software_version or 'of no version'}"
                said.append(f"{found} is too old here; use {least.version} or later")
        return said
