"""SIGINT (Ctrl-C) and SIGTERM: the command ends with one line and exit status 128 plus the signal's number.

The first signal raises `Interrupted` in the main thread, so that sessions and folders are closed. The second signal
ends the process at once. `Interrupted.raised` is the last one raised, for code under a library that swallows
KeyboardInterrupt. `is_reported` is True after its line was printed.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import ClassVar, NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SIGNALLED = 128


class Interrupted(KeyboardInterrupt):
    """A signal interrupted the command. A KeyboardInterrupt, because py4j closes its connection only for that."""

    raised: ClassVar["Interrupted | None"] = None

    def __init__(self, number: int) -> None:
        """`number` is the signal's number."""
        super().__init__(signal.Signals(number).name)
        self.number = number
        self.is_reported = False
        Interrupted.raised = self

    @property
    def status(self) -> int:
        """Return the exit status, as shells report it: 130 after SIGINT, 143 after SIGTERM."""
        return _SIGNALLED + self.number


class StopRequest:
    """Whether a signal asked a loop to end after its current step. `number` is the signal's, None before it."""

    number: int | None = None


def raise_on_signals() -> None:
    """Make the first signal raise Interrupted; call it in the main thread."""
    for number in _SIGNALS:
        signal.signal(number, _raise)


@contextmanager
def kept_handlers() -> Iterator[None]:
    """Restore the signal handlers on exit: Spark replaces the one for SIGINT when a session starts."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        if _is_main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Record the first signal instead of raising; the second signal raises Interrupted. Threads other than the main
    thread get no signals.
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


def _end_at_once(number: int, _frame: FrameType | None) -> NoReturn:
    os.write(2, b"sluicegate-spark: ended by a second signal\n")
    os._exit(_SIGNALLED + number)
