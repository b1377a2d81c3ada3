"""Mounts a small, resizable memory disk for a broker's folder."""

import os
import subprocess
from pathlib import Path


class Disk:
    """A tmpfs for `folder`. Sizes are in bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.why_not: str | None = "it was not mounted"
        """The reason why the disk is not mounted, or None."""

    def mount(self, size: int) -> None:
        """Mount the disk; if the machine does not allow it, `why_not` is set."""
        self.folder.mkdir(parents=True)
        self.why_not = self._mounted("-t", "tmpfs", "-o", f"size={size}", "none")

    def resize(self, size: int) -> None:
        why_not = self._mounted("-o", f"remount,size={size}")
        assert why_not is None, why_not

    def used(self) -> int:
        stats = os.statvfs(self.folder)
        return (stats.f_blocks - stats.f_bfree) * stats.f_frsize

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.folder)], check=False, capture_output=True)

    def _mounted(self, *arguments: str) -> str | None:
        done = subprocess.run(["mount", *arguments, str(self.folder)], check=False, capture_output=True, text=True)
        return None if done.returncode == 0 else done.stderr.strip()
