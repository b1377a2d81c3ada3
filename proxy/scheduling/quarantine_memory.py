"""The memory that bad records may take, of all connections together, until they are stored.

Whoever holds a claim holds the memory; where its last holder lets go of it, the room has it back. So nothing has to be
said where a client, a broker or a request goes away in between.
"""

import threading


class QuarantineRoom:
    """`total_bytes` to be claimed; any thread may."""

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self._taken = 0
        self._lock = threading.RLock()  # a claim may be collected within

    @property
    def free_bytes(self) -> int:
        """What may be claimed now."""
        return self.total_bytes - self._taken

    def claim(self, size: int) -> "RoomClaim | None":
        """Have `size` bytes until the claim is let go of; None where there are not so many."""
        with self._lock:
            if size > self.free_bytes:
                return None
            self._taken += size
        return RoomClaim(self, size)

    def give_back(self, size: int) -> None:
        """For a claim that has ended."""
        with self._lock:
            self._taken -= size


class RoomClaim:
    """So many bytes of a room, for as long as this is held."""

    __slots__ = ("_room", "_size")

    def __init__(self, room: QuarantineRoom, size: int) -> None:
        self._room = room
        self._size = size

    def __del__(self) -> None:
        self._room.give_back(self._size)
