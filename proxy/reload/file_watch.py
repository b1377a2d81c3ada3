"""Watches the certificate, key, password and token files that the configuration names.

If such a file is missing or unreadable, its last content stays in use, so the proxy would fail only at a restart. The
condition `file_unusable` reports the problem earlier. The watch uses the same checks as `sluicegate check`. It runs in
the process that the user started, which keeps the contents for workers that start later.
"""

import asyncio
from collections.abc import Callable

from sluicegate.config.model import Config
from sluicegate.proxy.network.daemon_thread import in_daemon_thread
from sluicegate.proxy.network.tls.certificates import Severity
from sluicegate.proxy.reload.config_check import flaws_in_files
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status

_LOOK_SECONDS = 5.0


class FileWatch:
    """Sets and clears `file_unusable` for each configuration key whose file is unusable."""

    def __init__(self, config: Callable[[], Config], status: Status) -> None:
        """`config` returns the configuration in force."""
        self._config = config
        self._status = status

    async def look_again(self) -> None:
        """Wait, then check the files once."""
        await asyncio.sleep(_LOOK_SECONDS)
        await self.check_files()

    async def check_files(self) -> None:
        """Check the files once."""
        self._status.set_all(Condition.FILE_UNUSABLE, await in_daemon_thread(self._flaws))

    def _flaws(self) -> dict[str, str]:
        """Return each unusable file's problem, by configuration key. Blocks."""
        found = (flaw for flaw in flaws_in_files(self._config()) if flaw.level is Severity.UNUSABLE)
        return {flaw.key: f"{flaw}; its last usable content stays in use" for flaw in found}
