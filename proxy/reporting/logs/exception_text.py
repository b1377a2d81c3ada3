"""Formats an unexpected exception in a few lines: the message, then the frames, innermost first.

Source lines are not read, because a disk may hang. Local variables are not shown, because they may contain secrets.
"""

import traceback
from pathlib import PurePath

from sluicegate.proxy.reporting.bounded_text import cut, printable

_MAX_FRAMES = 12
_MAX_CAUSES = 3


def fault_text(error: BaseException) -> str:
    """Return the exception with at most 12 frames, and at most two of its causes with at most 12 frames each."""
    parts: list[str] = []
    current: BaseException | None = error
    while current is not None and len(parts) < _MAX_CAUSES:
        parts.append(_one(current))
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return "\ncaused by ".join(parts)


def place_of(error: BaseException) -> str:
    """Return the place where the exception was raised, such as `session.py:12`. Equal errors are grouped by it."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return "nowhere" if last is None else f"{_file(last.tb_frame.f_code.co_filename)}:{last.tb_lineno}"


def _one(error: BaseException) -> str:
    frames = traceback.StackSummary.extract(
        traceback.walk_tb(error.__traceback__), limit=-_MAX_FRAMES, lookup_lines=False
    )
    where = "".join(f"\n  {_file(frame.filename)}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return f"{type(error).__name__}: {printable(cut(_message(error)))}{where}"


def _file(name: str) -> str:
    return "/".join(PurePath(name).parts[-2:])


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:  # the exception's own __str__ raises an error
        return f"(no text: {type(failure).__name__})"
