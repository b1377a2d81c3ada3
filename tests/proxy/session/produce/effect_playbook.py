"""A playbook for handlers: the effects that they must yield, in order, and the result of each effect.

    play(steps, [
        (ChargeRequest(80), None),
        (Validate, lambda effect: dispatch),
        (ForwardAsItCame(frame, ANY), None),
    ])

A difference is shown as two lists of effects, with a mark at each line that differs. No session, no I/O.
"""

from collections.abc import Callable, Sequence
from difflib import ndiff
from typing import Any

from sluicegate.proxy.session.effect import Effect, Steps

Expected = Effect[Any] | type[Effect[Any]]
"""The expected effect, or only its type."""
Answer = object | Callable[[Any], object]
"""The effect's result, or a function that returns the result for an effect. An exception is raised in the handler."""


def play_effects(steps: Steps[Any], playbook: Sequence[tuple[Expected, Answer]]) -> list[Effect[Any]]:
    """Return the yielded effects. Raises AssertionError if they are not those of the playbook."""
    yielded: list[Effect[Any]] = []
    result: object = None
    for expected, answer in playbook:
        try:
            effect = steps.throw(result) if isinstance(result, BaseException) else steps.send(result)
        except StopIteration:
            break
        yielded.append(effect)
        if not _is_as_expected(expected, effect):
            raise AssertionError(_difference(playbook, yielded))
        result = answer(effect) if callable(answer) else answer
    else:
        try:
            yielded.append(steps.throw(result) if isinstance(result, BaseException) else steps.send(result))
        except StopIteration:
            return yielded
    raise AssertionError(_difference(playbook, yielded))


def _is_as_expected(expected: Expected, effect: Effect[Any]) -> bool:
    return type(effect) is expected if isinstance(expected, type) else expected == effect


def _difference(playbook: Sequence[tuple[Expected, Answer]], yielded: Sequence[Effect[Any]]) -> str:
    lines = []
    for position, (expected, _) in enumerate(playbook):
        known = yielded[position] if position < len(yielded) else None
        is_equal = known is not None and _is_as_expected(expected, known)
        lines.append(repr(known) if is_equal else _named(expected))
    shown = ndiff(lines, [repr(effect) for effect in yielded])
    return "the handler yields other effects (-: expected, +: yielded)\n" + "\n".join(shown)


def _named(expected: Expected) -> str:
    return f"{expected.__name__}(...)" if isinstance(expected, type) else repr(expected)


class HandledRequest:
    """A handler whose bookkeeping is performed at once; a test answers all other effects, as a generator's."""

    def __init__(self, steps: Steps[None], perform: Callable[[Effect[Any]], object]) -> None:
        """`perform` returns the result of an effect, or NotImplemented if the test has to answer it."""
        self._steps = steps
        self._perform = perform

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, result: object) -> Any:
        """Return the next effect that the test has to answer. Raises StopIteration at the handler's end."""
        return self._until_answerable(self._steps.send(result))

    def throw(self, error: BaseException) -> Any:
        """Raise an error in the handler, and return the next effect that the test has to answer."""
        return self._until_answerable(self._steps.throw(error))

    def _until_answerable(self, effect: Effect[Any]) -> Effect[Any]:
        while (result := self._perform(effect)) is not NotImplemented:
            effect = self._steps.send(result)
        return effect
