"""Reads the configuration's file again while the proxy runs: on SIGHUP, and when its content has changed.

The new rules are compiled beside those that are in force, and take their place whole. A file with a mistake changes
nothing; it is told in the log, on /readyz and in a metric until the file is right again.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from sluicegate.config.model import Config
from sluicegate.proxy.process.config_file import ConfigFile, waits_for_a_restart
from sluicegate.proxy.process.health import Health
from sluicegate.proxy.process.reading_apart import Again, Explained, Reader, Unusable, Usable
from sluicegate.proxy.reporting.tally import Tally

_LOOK_SECONDS = 1.0
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
        self._log = structlog.get_logger("sluicegate")

    def ask(self) -> None:
        """Read it again soon, changed or not."""
        self._asked.set()

    async def run(self) -> None:
        """For ever."""
        while True:
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._asked.wait()
            except TimeoutError:
                pass
            is_asked = self._asked.is_set()
            self._asked.clear()
            try:
                if await asyncio.to_thread(self._file.has_changed) or is_asked:
                    await self._read()
            except Exception as error:  # the proxy goes on with what it has
                self._failed([f"our fault: {type(error).__name__}"], error)

    async def _read(self) -> None:
        found = await asyncio.to_thread(self._found)
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
        """What the file says now. Raises ReaderEnded."""
        found = Reader(Again(self._file)).answer()
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
