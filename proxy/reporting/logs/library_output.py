"""Turns the output of libraries and the interpreter into log lines.

asyncio's exception handler, warnings, and exceptions in finalisers and threads write to standard error directly, and
block the caller while nothing reads it. Here each becomes a line in the log's queue, at most one a minute and kind.
"""

import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from sluicegate.proxy.reporting.logs.aggregation import OnceAMinute
from sluicegate.proxy.reporting.logs.exception_text import fault_text, place_of


class _ToStructlog(logging.Handler):
    def __init__(self, reports: "_Reports") -> None:
        super().__init__(logging.WARNING)
        self._reports = reports

    def handle(self, record: logging.LogRecord) -> bool:
        """Report the record. The base class takes a lock first; `_Reports` is thread-safe without it."""
        error = record.exc_info[1] if record.exc_info else None
        self._reports.report(
            "library message",
            (record.pathname, record.lineno),
            _text(record),
            error,
            max(logging.WARNING, min(record.levelno // 10 * 10, logging.ERROR)),
            logger=record.name,
        )
        return True


def _text(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # arguments that do not fit their text
        return str(record.msg)


class _Reports:
    def __init__(self) -> None:
        self._log = structlog.get_logger("sluicegate")
        self._once = OnceAMinute()

    def report(
        self, event: str, kind: tuple[Any, ...], text: str, error: BaseException | None, level: int, **details: Any
    ) -> None:
        place = place_of(error) if error is not None else None
        times = self._once.due((event, *map(str, kind), type(error).__name__, place))
        if times is None:
            return
        if error is not None:
            details["exception"] = fault_text(error)
        if times > 1:
            details["times"] = times
        self._log.log(level, event, reason=text, **details)

    def unraisable(self, hook: Any) -> None:
        text = f"{hook.err_msg or 'exception ignored'} in {type(hook.object).__name__}"
        self.report("unraisable exception", (), text, hook.exc_value, logging.ERROR)

    def in_thread(self, hook: Any) -> None:
        name = hook.thread.name if hook.thread is not None else "?"
        self.report("thread ended with exception", (name,), f"thread {name}", hook.exc_value, logging.ERROR)

    def warning(self, message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
        self.report("Python warning", (filename, lineno), f"{category.__name__}: {message}", None, logging.WARNING)


@contextmanager
def library_output_logged() -> Iterator[None]:
    """Log the output of libraries and the interpreter until the end of the block."""
    reports = _Reports()
    root, handler = logging.getLogger(), _ToStructlog(reports)
    before = sys.unraisablehook, threading.excepthook, warnings.showwarning
    root.addHandler(handler)
    sys.unraisablehook, threading.excepthook = reports.unraisable, reports.in_thread
    warnings.showwarning = reports.warning  # type: ignore[assignment]  # the arguments at the end are never used
    try:
        yield
    finally:
        root.removeHandler(handler)
        sys.unraisablehook, threading.excepthook, warnings.showwarning = before
