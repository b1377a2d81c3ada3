"""Provides bytes as values for CEL expressions."""

from typing import Any

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.cel.rule import MeetsCondition
from sluicegate.validation.rules.cel.runtime import ANY_TYPE, CompiledExpression, Dialect, compiled, message_environment
from sluicegate.validation.rules.schemas.conditions import Clock, SchemaCondition

_BYTE = 3 if is_compiled() else 300  # ns


class BytesValues:
    """The values of the schema "bytes": the bytes after an id (`ValueReader`)."""

    def __init__(self, dialect: Dialect = Dialect.EXPRESSION) -> None:
        self._dialect = dialect

    def compiled(self, expression: str) -> CompiledExpression:
        if self._dialect is Dialect.EXPRESSION:
            return compiled(expression)
        return compiled(expression, message_environment(), ANY_TYPE)

    def estimate_reading(self, data: bytes) -> tuple[int, int, int]:
        return 0, len(data) + 1, len(data) * _BYTE

    def read(self, data: bytes) -> Any:
        return bytearray(data)


def true_of_bytes(condition: SchemaCondition, now: Clock) -> MeetsCondition:
    """Return a registry's condition on serialized bytes. Raises ExpressionUnusable."""
    return MeetsCondition(condition.expression, BytesValues(Dialect.CONDITION), now)
