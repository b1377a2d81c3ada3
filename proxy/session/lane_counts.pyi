from sluicegate.proxy.session.request_clock import RequestClock

class LaneCounts:
    clock: RequestClock

    def __init__(self, clock: RequestClock) -> None: ...
    def by_api(self) -> dict[int, int]: ...
