"""What the rules process has to know to make a schema or a rule of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Any

_NUMBERS = count(1)


class Kind(Enum):
    """Of schemas and rules, by the libraries that they take."""

    JSON = "JSON Schema"
    AVRO = "Avro"
    PROTOBUF = "Protobuf"
    PROTO_SOURCE = "Protobuf source"
    CONTENT_RULE = "content rule"
    EXPRESSION = "CEL"
    OWN_RULE = "own rule"


@dataclass(frozen=True, slots=True)
class Specification:
    """One schema or rule. Two of the same text are two: `number` tells them apart in the caches of both processes.

    `text`: a schema's or an expression's; for PROTOBUF a descriptor set. `references`: the schemas that it names, by
    the name that it has for them, each after what it names itself. `name`: a Protobuf file's message (empty: a
    registered schema, whose messages the data names), an own rule's entry point with its `options`, or the key of a
    CONTENT_RULE, whose `options` are its side and its own keys; for PROTO_SOURCE the folder that the descriptor set is
    written to.
    """

    kind: Kind
    text: bytes = b""
    references: tuple[tuple[str, bytes], ...] = ()
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    number: int = field(default_factory=lambda: next(_NUMBERS))

    @property
    def size(self) -> int:
        """Bytes of its texts."""
        return len(self.text) + sum(len(name) + len(text) for name, text in self.references)
