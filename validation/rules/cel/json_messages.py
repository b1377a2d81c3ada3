"""Reads JSON values for a registry's conditions."""

from importlib import import_module
from typing import Any

from sluicegate.validation.rules.cel.runtime import ANY_TYPE, CompiledExpression, compiled, message_environment
from sluicegate.validation.rules.cel.steps import DENSEST_BYTE
from sluicegate.validation.rules.cel.variables import value_of


class JsonMessages:
    """A reader of JSON as the variable `message` (`ValueReader`)."""

    def __init__(self) -> None:
        self._loads = import_module("orjson").loads

    def compiled(self, expression: str) -> CompiledExpression:
        return compiled(expression, message_environment(), ANY_TYPE)

    def estimate_reading(self, data: bytes) -> tuple[int, int, int]:
        size = len(data)
        return size // 2 + 1, size + 1, size * DENSEST_BYTE

    def read(self, data: bytes) -> Any:
        return value_of(data, self._loads)
