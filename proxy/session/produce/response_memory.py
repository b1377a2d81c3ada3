"""Limits the memory for rejections and findings that one session keeps until the broker responds."""

from sluicegate.proxy.session.pause_reason import Pausable, PauseReason

_MOST_KEPT_BYTES = 64 * 1024


class ResponseMemory:
    """Pauses the client while more than 64 KiB are kept."""

    def __init__(self, client: Pausable) -> None:
        self._client = client
        self._kept_bytes = 0

    def keep(self, size: int) -> None:
        """Add `size` bytes that are kept for a response."""
        self._kept_bytes += size
        if self._kept_bytes > _MOST_KEPT_BYTES:
            self._client.pause(PauseReason.REJECTIONS)

    def release(self, size: int) -> None:
        """Remove `size` bytes after the response, or at the end of the session."""
        self._kept_bytes -= size
        if self._kept_bytes <= _MOST_KEPT_BYTES:
            self._client.resume(PauseReason.REJECTIONS)
