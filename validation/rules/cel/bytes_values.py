"""Reads bytes for CEL expressions."""

from typing import Any

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.cel.rule import IsTrue
from sluicegate.validation.rules.cel.runtime import CompiledExpression, Dialect, compiled, message_environment
from sluicegate.validation.rules.schemas.conditions import SchemaCondition

_BYTE = 3 if is_compiled() else 300  # ns


class BytesValues:
    """The values of the schema "bytes": the bytes after an id (`ValueReader`)."""

    def __init__(self, dialect: Dialect = Dialect.EXPRESSION) -> None:
        self._dialect = dialect

    def compiled(self, expression: str) -> CompiledExpression:
        return compiled(expression, None if self._dialect is Dialect.EXPRESSION else message_environment())

    def estimate_reading(self, data: bytes) -> tuple[int, int, int]:
        return 0, len(data) + 1, len(data) * _BYTE

    def read(self, data: bytes) -> Any:
        return bytearray(data)


def true_of_bytes(condition: SchemaCondition) -> IsTrue:
    """Return a registry's condition on serialized bytes. Raises ExpressionUnusable."""
    return IsTrue(condition.expression, BytesValues(Dialect.CONDITION))
