"""Reloads the configuration while the proxy runs, on SIGHUP and when its files have changed.

The new policies are compiled while the old ones stay in force, and then replace them as a whole. A file with an error
changes nothing. The log, /readyz and a metric report the error until the file is corrected. If an included file has
disappeared, its policies stay in force until it is back, or until an operator accepts the removal. If a schema file is
missing or unreadable, its last schema applies until the file is back, or until no rule names it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import structlog

from sluicegate.config.disk.deadline import FileUnreadable, within_deadline
from sluicegate.config.disk.regular_file import is_unreadable
from sluicegate.config.files.source import Source
from sluicegate.config.loading import ConfigError, Loaded
from sluicegate.proxy.network.daemon_thread import in_daemon_thread
from sluicegate.proxy.registry.schema_files import missing_schemas
from sluicegate.proxy.reload.config_file import NOTHING, ConfigFile, keys_needing_restart
from sluicegate.proxy.reload.git_commits import commits_of
from sluicegate.proxy.reload.policy_changes import ProducerEffect, changes_between
from sluicegate.proxy.reload.policy_history import PolicyHistory, PolicyReload
from sluicegate.proxy.reload.reload_request import MissingFile, ReloadRequest, ReloadResult
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from sluicegate.validation.rules.rule import RuleUnusable

_LOOK_SECONDS = 1.0
# Checking many files takes long. So the pause is a multiple of the last check's duration, up to a maximum.
_PAUSE_FOR_LOOK = 20
_LONGEST_PAUSE_SECONDS = 10.0
_LOAD_SECONDS = 60.0
_MOST_PROBLEMS = 5
# The maximum number of entries of `topics` to compare with the previous ones (about a millisecond each), and the
# maximum number of changes in a log line.
_MOST_COMPARED = 2_000
_MOST_CHANGES = 20
_MOST_NAMED = 5

Check = Callable[[Loaded], None]
"""Checks a configuration's policies. Blocks. Raises ConfigError for unusable policies."""
Adopt = Callable[[Loaded], Awaitable[None]]
"""Puts a configuration's policies in force. If it raises ConfigError or RuleUnusable, nothing has changed."""


class Reloader:
    """Reloads the configuration in the process that the user started. `running` is the configuration at the start."""

    def __init__(
        self,
        file: ConfigFile,
        running: Loaded,
        check: Check,
        adopt: Adopt,
        status: Status,
        counters: Counters,
        history: PolicyHistory,
    ) -> None:
        self._file = file
        self._running = running.config
        self._in_force = running
        self._check = check
        self._adopt = adopt
        self._status = status
        self._counters = counters
        self._history = history
        file.watch(running.source.schemas.values())
        self._requested = asyncio.Event()
        self._requests: list[ReloadRequest] = []
        self._pause = _LOOK_SECONDS
        self._unreadable: str | None = None
        self._log = structlog.get_logger("sluicegate")

    def request(self) -> None:
        """Reload soon, even if the files have not changed."""
        self._requested.set()

    async def reload(self, accepts_removed: bool) -> ReloadResult:
        """Reload now and return the result. If `accepts_removed` is true, the policies of missing files are removed."""
        request = ReloadRequest(accepts_removed)
        self._requests.append(request)
        self.request()
        return await request.result

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            try:
                async with asyncio.timeout(self._pause):
                    await self._requested.wait()
            except TimeoutError:
                pass
            is_requested = self._requested.is_set()
            self._requested.clear()
            requests, self._requests = self._requests, []
            problems = await self._step(is_requested, any(request.accepts_removed for request in requests))
            missing = [MissingFile(file, topics) for file, topics in self._in_force.source.missing.items()]
            for request in requests:
                if not request.result.done():  # the client may have disconnected
                    request.result.set_result(ReloadResult(problems, missing))

    async def _step(self, is_requested: bool, accepts_removed: bool) -> list[str]:
        """Reload if the files have changed or a reload is requested. Return why the files were rejected."""
        try:
            # A file that was unreadable is loaded as soon as it can be read, even if it has not changed.
            if await self._has_changed() or is_requested or self._unreadable is not None:
                await self._reload(is_requested, accepts_removed)
        except FileUnreadable as error:
            return [self._report_unreadable(error)]
        except ConfigError as error:
            problems = [str(problem) for problem in error.problems]
            self._reject(problems)
        except RuleUnusable as error:  # a named object has changed since the check
            problems = [str(error)]
            self._reject(problems)
        except Exception as error:  # the policies in force stay in force
            problems = [f"internal error: {type(error).__name__}"]
            self._reject(problems, error)
        else:
            problems = []
        self._unreadable = None
        return problems

    def _report_missing(self) -> None:
        missing = f"{self._file} is missing; the policies stay in force" if self._file.is_missing else None
        self._status.set(Condition.CONFIGURATION_MISSING, missing)

    async def _has_changed(self) -> bool:
        """Return whether the files have changed. Raises FileUnreadable."""
        began_at = time.monotonic()
        try:
            changed = await in_daemon_thread(self._file.has_changed)
            self._report_missing()
            return changed
        finally:
            took = time.monotonic() - began_at
            self._pause = min(max(_LOOK_SECONDS, _PAUSE_FOR_LOOK * took), _LONGEST_PAUSE_SECONDS)

    async def _reload(self, is_requested: bool, accepts_removed: bool) -> None:
        """Load the files and put them in force. Raises ConfigError and FileUnreadable."""
        previous = NOTHING if accepts_removed else self._in_force.source
        work = partial(self._load, previous, is_requested)
        key = (self._file, "load", is_requested, accepts_removed)
        loaded: Loaded = await in_daemon_thread(partial(within_deadline, key, work, _LOAD_SECONDS))
        if accepts_removed and self._in_force.source.missing:
            files = [str(file) for file in self._in_force.source.missing if file not in loaded.source.digests]
            self._log.warning("removed policy files accepted", files=files)
        if not self._only_misses_files(loaded, is_requested):
            await self._adopt(loaded)
        self._report_missing_files(loaded.source)
        adopted_ms = time.time_ns() // 1_000_000
        self._status.end(Condition.CONFIGURATION_REJECTED)
        self._counters.config_reloads += 1
        self._log.info("configuration reloaded", file=str(self._file), topics=len(loaded.config.topics))
        for warning in loaded.warnings[:_MOST_PROBLEMS]:
            self._log.warning("configuration warning", warning=warning)
        before, self._in_force = self._in_force, loaded
        await in_daemon_thread(partial(self._report_changes, before, loaded, adopted_ms))
        keys = keys_needing_restart(self._running, loaded.config)
        if keys:
            self._log.warning("these changes need a restart", keys=keys)

    def _report_changes(self, before: Loaded, after: Loaded, adopted_ms: int) -> None:
        """Log and store which policies became stricter or looser, and which files changed. Blocks."""
        old, new = before.source.digests, after.source.digests
        files = {
            str(path): new[path].hex() if path in new else None
            for path in dict.fromkeys((*new, *old))
            if old.get(path) != new.get(path)
        }
        commits = commits_of(path for path, digest in files.items() if digest is not None)
        if max(len(before.config.topics), len(after.config.topics)) > _MOST_COMPARED:
            self._log.info("policies changed", files=files, commits=commits, compared=False)
            self._history.add(PolicyReload(adopted_ms, files, commits=commits))
            return
        try:
            changes = list(changes_between(before, after))
        except Exception as error:  # the new policies are in force nevertheless
            self._log.error("policies not compared", files=files, exc_info=error)
            self._history.add(PolicyReload(adopted_ms, files, commits=commits))
            return
        if not changes:
            return
        named = {
            effect.value: [str(change) for change in changes if change.effect is effect][:_MOST_CHANGES]
            for effect in ProducerEffect
        }
        self._log.info("policies changed", files=files, commits=commits, count=len(changes), **named)
        self._history.add(PolicyReload(adopted_ms, files, named, len(changes), commits))

    def _load(self, previous: Source, is_requested: bool) -> Loaded:
        """Load the configuration. Blocks. Raises ConfigError."""
        loaded = self._file.read(previous)
        source = loaded.source
        if self._only_misses_files(loaded, is_requested):
            source.schemas = self._in_force.source.schemas
        else:
            self._check(loaded)
        source.missing |= missing_schemas(loaded.config, source)
        schemas = source.schemas.values()
        self._file.watch(schemas, {file for schema in schemas for file in schema.files if is_unreadable(file)})
        return loaded

    def _only_misses_files(self, loaded: Loaded, is_requested: bool) -> bool:
        """Return whether missing files are the only change.

        If so, nothing is compiled: the missing folder may also contain secret files, without which compiling fails.
        """
        return bool(loaded.source.missing) and not is_requested and loaded.config == self._in_force.config

    def _report_missing_files(self, source: Source) -> None:
        known = self._in_force.source.missing
        new = {str(file): list(topics) for file, topics in source.missing.items() if file not in known}
        if new:
            self._log.warning("policy files missing; their last policies stay in force", files=new)
        self._status.set_all(
            Condition.POLICY_FILE_MISSING,
            {str(file): f"{file} is missing or unreadable; {_kept(topics)}" for file, topics in source.missing.items()},
        )

    def _report_unreadable(self, error: FileUnreadable) -> str:
        """Report an unreadable file once, and return the reason."""
        reason = f"{error.filename or self._file}: {error.strerror}"
        if reason != self._unreadable:
            self._unreadable = reason
            self._reject([reason])
        return reason

    def _reject(self, problems: list[str], error: Exception | None = None) -> None:
        self._status.begin(Condition.CONFIGURATION_REJECTED, problems[0])
        self._counters.config_reload_failures += 1
        self._log.error(
            "configuration rejected; previous policies stay in force",
            problems=problems[:_MOST_PROBLEMS],
            exc_info=error,
        )


def _kept(topics: Sequence[str]) -> str:
    """Describe which policies of a missing file stay in force."""
    if not topics:
        return "its last content stays in force"
    more = f" and {len(topics) - _MOST_NAMED} more" if len(topics) > _MOST_NAMED else ""
    return f"its last policies stay in force for {', '.join(topics[:_MOST_NAMED])}{more}"
