"""What libraries and the interpreter would print to standard error by themselves becomes log lines.

asyncio's handler of exceptions, warnings, and exceptions in finalisers and threads all write where they stand, and wait
while nobody reads. Here each becomes a line behind the log's queue, at most one a minute for each kind.
"""

import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from sluicegate.proxy.reporting.logs.exception_text import fault_text, place_of
from sluicegate.proxy.reporting.once_a_minute import OnceAMinute


class _ToStructlog(logging.Handler):
    def __init__(self, reports: "_Reports") -> None:
        super().__init__(logging.WARNING)
        self._reports = reports

    def handle(self, record: logging.LogRecord) -> bool:
        """As the base class, without its lock: what is behind takes lines from any thread."""
        error = record.exc_info[1] if record.exc_info else None
        self._reports.report(
            f"{record.name} reports",
            (record.pathname, record.lineno),
            _text(record),
            error,
            max(logging.WARNING, min(record.levelno // 10 * 10, logging.ERROR)),
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

    def report(self, event: str, kind: tuple[Any, ...], text: str, error: BaseException | None, level: int) -> None:
        place = place_of(error) if error is not None else None
        times = self._once.due((event, *map(str, kind), type(error).__name__, place))
        if times is None:
            return
        details: dict[str, Any] = {"exception": fault_text(error)} if error is not None else {}
        if times > 1:
            details["times"] = times
        self._log.log(level, event, reason=text, **details)

    def unraisable(self, what: Any) -> None:
        text = f"{what.err_msg or 'exception ignored'} in {type(what.object).__name__}"
        self.report("an exception that nobody could be told", (), text, what.exc_value, logging.ERROR)

    def in_thread(self, what: Any) -> None:
        name = what.thread.name if what.thread is not None else "?"
        self.report("a thread has ended with an exception", (name,), f"thread {name}", what.exc_value, logging.ERROR)

    def warning(self, message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
        self.report("warning", (filename, lineno), f"{category.__name__}: {message}", None, logging.WARNING)


@contextmanager
def stray_reports_as_lines() -> Iterator[None]:
    """Until the end of the block."""
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
