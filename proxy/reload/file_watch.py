"""Watches the files with certificates, keys, passwords and tokens that the configuration names.

Their readers keep the last content of a file that is missing or unreadable, so nothing fails until a restart: the
condition `file_unusable` reports it before. The watch reads them by the same checks as `sluicegate check`, in the
process that the user started, which has the contents for workers that start later.
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
    """Begins and ends `file_unusable` for each key of the configuration with an unusable file."""

    def __init__(self, config: Callable[[], Config], status: Status) -> None:
        """`config` returns the configuration in force."""
        self._config = config
        self._status = status

    async def look_again(self) -> None:
        """Wait, then look at the files once."""
        await asyncio.sleep(_LOOK_SECONDS)
        await self.look()

    async def look(self) -> None:
        """Look at the files once."""
        self._status.set_all(Condition.FILE_UNUSABLE, await in_daemon_thread(self._flaws))

    def _flaws(self) -> dict[str, str]:
        """Return what is wrong with the file of a key, by key. Blocks."""
        found = (flaw for flaw in flaws_in_files(self._config()) if flaw.level is Severity.UNUSABLE)
        return {flaw.key: f"{flaw}; its last usable content stays in use" for flaw in found}
