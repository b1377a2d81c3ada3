"""Reads Protobuf messages for CEL expressions: the runtime gets the bytes, and parses them with the schema itself."""

from collections.abc import Callable
from typing import Any

from sluicegate.validation.rules.cel.runtime import (
    Compiled,
    Dialect,
    NotOfSchema,
    compiled,
    environment_for,
    message_environment,
)

# The library's parsing, and the runtime's, in steps of the library's.
_PARSINGS = 4
_STEP = 100  # ns


class _Message:
    """Bytes that the runtime takes for a message, by its type and wire format."""

    def __init__(self, kind: Any, data: bytes) -> None:
        self.DESCRIPTOR = kind
        self._data = data

    def SerializePartialToString(self) -> bytes:  # noqa: N802  # Protobuf's name
        """Return the message."""
        return self._data


class _Kind:
    """The name of a message type, as the runtime asks for it."""

    def __init__(self, full_name: str) -> None:
        self.full_name = full_name


class ProtobufValues:
    """The values of one message type (`SchemaValues`). `steps` and `fault`: those of its schema."""

    def __init__(
        self,
        descriptor: Any,
        steps: Callable[[bytes], int],
        fault: Callable[[bytes], str | None],
        dialect: Dialect = Dialect.EXPRESSION,
    ) -> None:
        self._dialect = dialect
        self._pool = descriptor.file.pool
        self._kind = _Kind(str(descriptor.full_name))
        self._steps = steps
        self._fault = fault

    def compiled(self, expression: str) -> Compiled:
        if self._dialect is Dialect.CONDITION:
            return compiled(expression, message_environment(self._pool))
        return compiled(expression, environment_for(self._pool, self._kind.full_name))

    def extent(self, data: bytes) -> tuple[int, int, int]:
        size, steps = len(data), self._steps(data)
        return size + 1, size + steps, steps * _PARSINGS * _STEP

    def read(self, data: bytes) -> Any:
        if self._fault(data) is not None:  # the runtime would write to stderr
            raise NotOfSchema
        return _Message(self._kind, data)
