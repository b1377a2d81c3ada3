from collections.abc import Callable

from sluicegate.proxy.session.request_clock import RequestClock

class PathCounts:
    clock: RequestClock
    keys: int
    failed: Callable[[str, Exception], None]

    def __init__(self, clock: RequestClock, failed: Callable[[str, Exception], None]) -> None: ...
    def by_api(self) -> dict[int, int]: ...

class FastPathBuffer:
    total_bytes: int
    held_bytes: int
    def __init__(self, total_bytes: int) -> None: ...
