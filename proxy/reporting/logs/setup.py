"""Configures structlog. Lines go to standard error, as JSON objects, or as colored text on a terminal.

Libraries and the interpreter write some output to standard error directly: asyncio's exception handler, warnings, and
exceptions in finalizers and threads. This would block the caller if no process reads it. So each of these messages
becomes a line in the log's queue instead, at most one per minute for each kind.
"""

import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from sluicegate.config.model import Log
from sluicegate.proxy.reporting.bounded_text import MAX_CHARACTERS, all_printable, bounded
from sluicegate.proxy.reporting.logs.aggregation import OnceAMinute
from sluicegate.proxy.reporting.logs.exception_text import fault_text, place_of
from sluicegate.proxy.reporting.logs.writer import Line, LogWriter


class _ToStructlog(logging.Handler):
    def __init__(self, reports: "_Reports") -> None:
        super().__init__(logging.WARNING)
        self._reports = reports

    def handle(self, record: logging.LogRecord) -> bool:
        """Report the record.

        The base class takes a lock first. `_Reports` is thread-safe without that lock.
        """
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
    except Exception:  # the arguments do not fit the format
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
    """Log the output of libraries and the interpreter until the block ends."""
    reports = _Reports()
    root, handler = logging.getLogger(), _ToStructlog(reports)
    before = sys.unraisablehook, threading.excepthook, warnings.showwarning
    root.addHandler(handler)
    sys.unraisablehook, threading.excepthook = reports.unraisable, reports.in_thread
    warnings.showwarning = reports.warning  # type: ignore[assignment]
    try:
        yield
    finally:
        root.removeHandler(handler)
        sys.unraisablehook, threading.excepthook, warnings.showwarning = before


_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_AT_THE_END_SECONDS = 2.0
_PIPE_BYTES = 4096  # PIPE_BUF of Linux; writing this size to a pipe is atomic
_SHORTER = (MAX_CHARACTERS, 250, 60)
_FAULT = "exception"

_writer: LogWriter | None = None


def set_up_logging(log: Log) -> None:
    """Configure structlog for a command. The calling thread writes the lines, and may wait for the terminal."""
    render = _renderer(log)

    def as_text(_logger: WrappedLogger, _name: str, line: EventDict) -> str:
        return render(dict(line)).decode().removesuffix("\n")

    _configure(log, as_text, structlog.PrintLoggerFactory(sys.stderr))


@contextmanager
def queued_logging(log: Log) -> Iterator[None]:
    """Configure structlog for the proxy, so that no caller waits for a line.

    On exit, the queued lines are written within 2 s.
    """
    global _writer  # noqa: PLW0603  # as structlog's own configuration: one for the process
    writer = _writer = LogWriter(_standard_error(), _renderer(log), _lost_lines)
    _configure(log, _as_it_is, lambda *_: _QueuedLogger(writer))
    try:
        with library_output_logged():
            yield
    finally:
        writer.close(_AT_THE_END_SECONDS)


def log_warnings(warnings: Iterable[str]) -> None:
    """Log each configuration warning as an event."""
    log = structlog.get_logger("sluicegate")
    for warning in warnings:
        log.warning("configuration warning", warning=warning)


def log_lines_dropped() -> int:
    """Return how many lines this process has lost."""
    return _writer.dropped if _writer is not None else 0


class _QueuedLogger:
    """structlog's final logger, which puts lines into the queue."""

    def __init__(self, writer: LogWriter) -> None:
        self.debug = self.info = self.warning = self.error = writer.put


def _configure(log: Log, last: Processor, factory: Callable[..., Any]) -> None:
    structlog.configure(
        processors=[*_first_processors(), last],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS["debug" if log.follows_connections else log.level]),
        logger_factory=factory,
        cache_logger_on_first_use=False,
    )


def _first_processors() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _fault_as_text,
        _bounded_values,
    ]


def _fault_as_text(_logger: WrappedLogger, _name: str, line: EventDict) -> EventDict:
    error = line.pop("exc_info", None)
    if isinstance(error, BaseException):
        line[_FAULT] = fault_text(error)
    return line


def _bounded_values(_logger: WrappedLogger, _name: str, line: EventDict) -> EventDict:
    return {key: bounded(value) for key, value in line.items()}


def _as_it_is(_logger: WrappedLogger, _name: str, line: EventDict) -> tuple[tuple[EventDict], dict[str, Any]]:
    return (line,), {}


def _renderer(log: Log) -> Callable[[Line], bytes]:
    """Return the function that renders a line short enough for an atomic write to a pipe."""
    pretty = log.format == "pretty" or (log.format == "auto" and sys.stderr is not None and sys.stderr.isatty())
    last: Processor = _pretty() if pretty else structlog.processors.JSONRenderer()

    def render(line: Line) -> bytes:
        data = b""
        for characters in _SHORTER:
            shorter = {key: bounded(value, characters) for key, value in line.items()}
            data = str(last(None, "", shorter)).encode("utf-8", "backslashreplace") + b"\n"
            if len(data) <= _PIPE_BYTES:
                break
        return data

    return render


def _pretty() -> Processor:
    console = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)

    def render(logger: WrappedLogger, name: str, line: EventDict) -> str:
        fault = line.pop(_FAULT, None)
        shown = {key: all_printable(value) for key, value in line.items()}
        if fault is not None:
            shown[_FAULT] = "\n".join(all_printable(part) for part in fault.split("\n"))
        return console(logger, name, shown)

    return render


def _lost_lines(count: int) -> Line:
    reason = "standard error accepted lines too slowly, or not at all"
    line: EventDict = {"event": "log lines dropped", "lines": count, "reason": reason}
    for processor in _first_processors():
        line = processor(None, "warning", line)  # type: ignore[assignment]  # each of these returns a dict
    return dict(line)


def _standard_error() -> int:
    """Return the descriptor of standard error, or of /dev/null if the process was started without standard error.

    Without standard error, descriptor 2 may belong to another file.
    """
    return sys.stderr.fileno() if sys.stderr is not None else os.open(os.devnull, os.O_WRONLY)
