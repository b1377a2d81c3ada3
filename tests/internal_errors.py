"""Fails each test in which the proxy logs an internal error, unless the test has the mark `internal_error`.

The proxy survives its own errors, so a test that only checks something else would pass. Log lines of this process
count, even while `capture_logs` is active, and so do those of proxies in separate processes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog._base import BoundLoggerBase

from tests.broker.proxy_process import ProxyProcess

_WORDS = "internal error"
_EXCEPTION = '"exception": '
"""The field of a log line that contains an exception."""
_MOST_SHOWN = 2_000


class _Logged:
    """Collects internal errors from the loggers of this process and from the logs of proxies."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._read: dict[Path, int] = {}

    def note(self, event: object, fields: dict[str, Any]) -> None:
        """Note a log line, if it is an internal error. `fields`: those beside its event."""
        error = fields.get("exc_info") or None
        if error is not None or _WORDS in str(event):
            shown = {name: repr(value) for name, value in fields.items() if value is not None}
            self._lines.append(f"{event} {shown}")

    def taken(self) -> list[str]:
        """Return the internal errors since the last call."""
        lines, self._lines = self._lines, []
        for file, proxy in [*ProxyProcess.started.items()]:
            has_ended = proxy.process is None or proxy.process.poll() is not None
            lines += self._new_lines(file)
            if has_ended:
                del ProxyProcess.started[file]
        return lines

    def _new_lines(self, file: Path) -> Iterator[str]:
        begin = self._read.get(file, 0)
        try:
            if file.stat().st_size <= begin:
                return
            with file.open("rb") as log:
                log.seek(begin)
                content = log.read()
        except OSError:  # the test has removed the folder
            return
        complete = content[: content.rfind(b"\n") + 1]
        self._read[file] = begin + len(complete)
        for line in complete.decode(errors="replace").splitlines():
            if _WORDS in line or _EXCEPTION in line:
                yield line


_logged = _Logged()
_process_event = BoundLoggerBase._process_event


def _noted(self: BoundLoggerBase, method: str, event: Any, fields: dict[str, Any]) -> Any:
    _logged.note(event, fields)
    return _process_event(self, method, event, fields)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "internal_error: the proxy may log an internal error in this test")
    BoundLoggerBase._process_event = _noted  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def _no_internal_errors(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check a test's logs. The fixture begins before all other fixtures of a test and ends after them."""
    yield
    lines = _logged.taken()
    is_expected = request.node.get_closest_marker("internal_error") is not None
    if lines and not is_expected:
        shown = "\n".join(line[:_MOST_SHOWN] for line in lines)
        pytest.fail(f"the proxy logged {len(lines)} internal errors (mark the test `internal_error`?):\n{shown}")
