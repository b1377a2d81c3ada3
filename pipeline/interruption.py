"""SIGINT (Ctrl-C) and SIGTERM in a command: it ends with one line and with 128 plus the signal's number.

The first signal raises `Interrupted` in the main thread, so that sessions and folders are closed on the way out. The
second one ends the process at once. `Interrupted.raised` is the last one, for code that a library's own handling of
KeyboardInterrupt hides it from; `is_reported` once its line is printed.
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
    """A signal asked the command to end. It is a KeyboardInterrupt, because py4j closes its connection only then."""

    raised: ClassVar["Interrupted | None"] = None

    def __init__(self, number: int) -> None:
        """`number`: the signal's."""
        super().__init__(signal.Signals(number).name)
        self.number = number
        self.is_reported = False
        Interrupted.raised = self

    @property
    def status(self) -> int:
        """The exit status, as shells report it: 130 after SIGINT, 143 after SIGTERM."""
        return _SIGNALLED + self.number


class StopRequest:
    """Whether a signal asked a loop to end after what it is doing; `number` is the signal's, None before it."""

    number: int | None = None


def raise_on_signals() -> None:
    """Make the first signal raise Interrupted; call it in the main thread."""
    for number in _SIGNALS:
        signal.signal(number, _raise)


@contextmanager
def kept_handlers() -> Iterator[None]:
    """Restore the handlers of signals at the end: Spark sets one for SIGINT when a session begins."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        if _is_main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Let the first signal only be noted; the second one raises Interrupted. Other threads than the main one, which
    get no signals, wait as before.
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
    os.write(2, b"sluicegate-spark: ended at once, by a second signal\n")
    os._exit(_SIGNALLED + number)
