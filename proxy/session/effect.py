"""Effects, which are values that describe what a handler requests.

A runner performs them and sends the results back to the handler (`sluicegate.proxy.session.request_runner`).
"""

from collections.abc import Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Result_co = TypeVar("Result_co", covariant=True)


class Effect(Generic[Result_co]):
    """One effect. In a handler, `result = yield from effect` yields the effect and returns its typed result."""

    __slots__ = ()

    def __iter__(self) -> "Generator[Effect[Any], Any, Result_co]":
        result: Result_co = yield self
        return result


Steps = Generator[Effect[Any], Any, T]
"""A handler, which is a generator that yields effects and receives their results."""
