"""Reads the configuration's file again while the proxy runs: on SIGHUP, and when its content has changed.

The new rules are compiled beside those that are in force, and take their place whole. A file with a mistake changes
nothing; it is told in the log, on /readyz and in a metric until the file is right again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from sluicegate.config.file_deadline import FileUnreadable
from sluicegate.config.model import Config
from sluicegate.proxy.network.daemon_thread import in_daemon_thread
from sluicegate.proxy.process.config_file import ConfigFile, waits_for_a_restart
from sluicegate.proxy.process.health import Health
from sluicegate.proxy.process.reading_apart import Again, Explained, Reader, ReaderSilent, Unusable, Usable
from sluicegate.proxy.reporting.tally import Tally

_LOOK_SECONDS = 1.0
# Of many files a look takes its time: the pause after one is so many times as long, up to the longest.
_PAUSE_FOR_LOOK = 20
_LONGEST_PAUSE_SECONDS = 10.0
_READ_SECONDS = 60.0
_MOST_PROBLEMS = 5

Adopt = Callable[[Config], Awaitable[None]]
"""Lets a configuration's policies hold."""


class Reloading:
    """For one proxy, in the process that its user started. `running` is what it was started with."""

    def __init__(self, file: ConfigFile, running: Config, adopt: Adopt, health: Health, tally: Tally) -> None:
        self._file = file
        self._running = running
        self._adopt = adopt
        self._health = health
        self._tally = tally
        self._asked = asyncio.Event()
        self._pause = _LOOK_SECONDS
        self._no_response: str | None = None
        self._log = structlog.get_logger("sluicegate")

    def ask(self) -> None:
        """Read it again soon, changed or not."""
        self._asked.set()

    async def run(self) -> None:
        """For ever."""
        while True:
            try:
                async with asyncio.timeout(self._pause):
                    await self._asked.wait()
            except TimeoutError:
                pass
            is_asked = self._asked.is_set()
            self._asked.clear()
            try:
                if await self._has_changed() or is_asked:
                    await self._read()
            except ReaderSilent as error:
                self._failed([str(error)])
            except Exception as error:  # the proxy goes on with what it has
                self._failed([f"our fault: {type(error).__name__}"], error)

    async def _has_changed(self) -> bool:
        """As the file's; False while its file system does not respond, which is reported once."""
        began_at = time.monotonic()
        try:
            changed = await in_daemon_thread(self._file.has_changed)
        except FileUnreadable as error:
            if self._no_response is None:
                self._no_response = f"{error.filename or self._file}: {error.strerror}"
                self._failed([self._no_response])
            return False
        finally:
            took = time.monotonic() - began_at
            self._pause = min(max(_LOOK_SECONDS, _PAUSE_FOR_LOOK * took), _LONGEST_PAUSE_SECONDS)
        if self._no_response is None:
            return changed
        self._no_response = None
        return True  # whether it is as it was or not, it can be taken again

    async def _read(self) -> None:
        found = await in_daemon_thread(self._found)
        if found.file is not None:
            self._file.take(found.file)
        if isinstance(found, Unusable):
            self._failed(list(found.problems))
            return
        await self._adopt(found.config)
        self._health.bad_config = None
        self._tally.config_reloads += 1
        self._log.info("the configuration was read again", file=str(self._file), topics=len(found.config.topics))
        for warning in found.warnings[:_MOST_PROBLEMS]:
            self._log.warning("the configuration can be used", but=warning)
        waiting = waits_for_a_restart(self._running, found.config)
        if waiting:
            self._log.warning("some keys count only with the next start", keys=waiting)

    def _found(self) -> Usable | Unusable:
        """What the file says now. Raises ReaderEnded and ReaderSilent."""
        found = Reader(Again(self._file)).answer(_READ_SECONDS)
        assert not isinstance(found, Explained)
        return found

    def _failed(self, problems: list[str], error: Exception | None = None) -> None:
        self._health.bad_config = f"the configuration's file was not taken: {problems[0]}"
        self._tally.config_reload_failures += 1
        self._log.error(
            "the configuration's file was not taken, going on with the rules that hold",
            problems=problems[:_MOST_PROBLEMS],
            exc_info=error,
        )
