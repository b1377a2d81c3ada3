"""The user's function, named as `module:function`, that corrects dead letters.

It gets a DeadLetter and returns the Record to write, or None to leave it:

    def in_euros(letter: DeadLetter) -> Record | None:
        return replace(letter.record, value=...)
"""

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module

from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, Record, encoded
from sluicegate.validation.rules.own_rule import place_of

Correct = Callable[[DeadLetter], Record | None]


class NoFunction(Exception):
    """The named function does not exist; the text gives reason and fix."""


class FunctionFails(Exception):
    """The function raised, or returned an invalid record; the text names the dead letter."""


@lru_cache(maxsize=1)
def function_named(name: str) -> Correct:
    """Import the function. Raises NoFunction."""
    module, colon, within = name.partition(":")
    if not (module and colon and within):
        raise NoFunction(f"--by {name}: expected module:function, as corrections:in_euros")
    try:
        found: Correct | None = getattr(import_module(module), within, None)
    except Exception as error:
        raise NoFunction(
            f"--by {name}: {module} cannot be imported ({type(error).__name__} at {place_of(error)}); install it, or "
            "add its folder to PYTHONPATH, here and on executors"
        ) from error
    if not callable(found):
        raise NoFunction(f"--by {name}: {module} has no function {within}")
    return found


def corrected_by(name: str, letter: DeadLetter) -> Record | None:
    """Return what the function returns for a dead letter. Raises FunctionFails, whose text has no record contents."""
    try:
        found = function_named(name)(letter)
    except NoFunction:
        raise
    except Exception as error:
        raise FunctionFails(
            f"{letter.place}: {name} failed with {type(error).__name__} at {place_of(error)}; fix the "
            "function, or let it return None for records that it cannot correct, and start again"
        ) from error
    if found is not None and not _is_record(found):
        raise FunctionFails(
            f"{letter.place}: {name} returned {type(found).__name__}, not a valid record: a Record of "
            "sluicegate.pipeline has an int64 timestamp in ms, a key and a value of bytes or None, and headers as "
            "pairs of a name (other bytes than UTF-8 as surrogates, surrogateescape) and bytes or None"
        )
    return found


def _is_record(found: object) -> bool:
    if not isinstance(found, Record) or not isinstance(found.timestamp, int) or not -(2**63) <= found.timestamp < 2**63:
        return False
    data = (found.key, found.value, *(value for _, value in found.headers))
    return all(each is None or isinstance(each, bytes) for each in data) and all(
        isinstance(name, str) and _is_name(name) for name, _ in found.headers
    )


def _is_name(text: str) -> bool:
    try:
        encoded([(text, None)])
    except UnicodeEncodeError:
        return False
    return True
