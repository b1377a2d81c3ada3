"""Handles SIGINT (Ctrl-C) and SIGTERM: the command prints one line and exits with status 128 plus the signal's number.

The first signal raises `Interrupted` in the main thread, so that sessions and folders are closed. The second signal
ends the process at once.

Python raises the exception between any two instructions, so it does not always arrive unchanged. A cleanup may fail
because of it, and the cleanup's error then replaces Interrupted. For example, Spark cannot close a file while it writes
to it. Code that handles errors therefore checks `Interrupted.pending()` first. Python discards exceptions in
finalizers, and py4j has a finalizer for each Java object. In this case, the exception is raised again a moment later.
While a session starts, Spark's own handler raises a plain KeyboardInterrupt for SIGINT.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import ClassVar, NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SIGNALLED = 128
_AGAIN_SECONDS = 0.01


class Interrupted(KeyboardInterrupt):
    """Raised if a signal interrupted the command.

    The class is a KeyboardInterrupt, because py4j only closes its connection for this exception. `is_reported` is
    whether the command has printed its line.
    """

    _raised: ClassVar["Interrupted | None"] = None

    def __init__(self, number: int) -> None:
        """Keep the signal's `number`."""
        super().__init__(signal.Signals(number).name)
        self.number = number
        self.is_reported = False
        Interrupted._raised = self

    @classmethod
    def pending(cls) -> "Interrupted | None":
        """Return the interruption that was raised but not yet reported, because another error may have replaced it."""
        raised = cls._raised
        return None if raised is None or raised.is_reported else raised

    @property
    def status(self) -> int:
        """Return the exit status that shells use: 130 after SIGINT, 143 after SIGTERM."""
        return _SIGNALLED + self.number


class StopRequest:
    """A request to end a loop after its current step. `number` is the signal's number; None before a signal."""

    number: int | None = None


def raise_on_signals() -> None:
    """Make the first signal raise Interrupted. Call this function in the main thread."""
    for number in _SIGNALS:
        signal.signal(number, _raise)
    sys.unraisablehook = _raise_again


@contextmanager
def kept_handlers() -> Iterator[None]:
    """Restore the signal handlers on exit, because Spark replaces the handler of SIGINT when a session starts."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    except KeyboardInterrupt as error:
        if isinstance(error, Interrupted):
            raise
        raise Interrupted(signal.SIGINT) from None  # Spark's handler raises KeyboardInterrupt
    finally:
        if _is_main_thread():
            for number, handler in before.items():
                signal.signal(number, handler if Interrupted.pending() is None else _end_at_once)


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Record the first signal instead of raising an exception. The second signal raises Interrupted.

    Only the main thread receives signals.
    """
    request = StopRequest()

    def note(number: int, _frame: FrameType | None) -> None:
        request.number = number
        raise_on_signals()

    with kept_handlers():
        if _is_main_thread():
            for number in _SIGNALS:
                signal.signal(number, note)
        yield request


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _raise(number: int, _frame: FrameType | None) -> NoReturn:
    for each in _SIGNALS:
        signal.signal(each, _end_at_once)
    raise Interrupted(number)


def _raise_again(swallowed: "sys.UnraisableHookArgs") -> None:
    """Raise an interruption again that Python has discarded.

    This happens a moment later, because the finalizer may still be running.
    """
    interrupted = swallowed.exc_value
    if not isinstance(interrupted, Interrupted):
        sys.__unraisablehook__(swallowed)
        return
    number = interrupted.number
    signal.signal(signal.SIGALRM, lambda _number, frame: _raise(number, frame))
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)


def _end_at_once(number: int, _frame: FrameType | None) -> NoReturn:
    os.write(2, b"sluicegate-spark: ended by a second signal\n")
    os._exit(_SIGNALLED + number)
