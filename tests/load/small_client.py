"""Runs the small client in a separate process. It sends up to a hundred small Produce requests per second, one at a
time."""

import gc
import socket
import struct
import threading
import time
from typing import Any

from tests.bounds.frames import good_batch, sized_produce_request
from tests.bounds.honest_client import connect
from tests.bounds.side_process import report, serve_commands, settings_from_arguments
from tests.load.gauges import TICK_SECONDS, processor_seconds
from tests.load.waits import waits_of

_EVERY_SECONDS = 0.010
_LONG_SECONDS = 60


class SmallClient(threading.Thread):
    """Sends on one lasting connection and measures each response time.

    With a `pid`, what the proxy does for others counts, and not what the machine does beside it: a wait is at most the
    processor time that this process has used meanwhile.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self._settings = settings
        self._pid: int | None = settings.get("pid")
        self._request = sized_produce_request(
            9, {b"small": [(0, good_batch(time.time_ns() // 1_000_000, 100))]}, client_id=b"small"
        )
        self._asked_at: tuple[float, float] | None = None
        self.seconds: list[float] = []
        self.failures: list[str] = []

    def run(self) -> None:
        connection = connect(self._settings)
        while not self.failures:
            begun = time.monotonic()
            self._asked_at = begun, self._used()
            try:
                self._ask(connection)
            except OSError as error:
                self.failures.append(f"{error!r} after {time.monotonic() - begun:.2f} s")
            self.seconds.append(self._waited(*self._asked_at))
            self._asked_at = None
            time.sleep(max(0.001, _EVERY_SECONDS - (time.monotonic() - begun)))

    def _used(self) -> float:
        return 0.0 if self._pid is None else processor_seconds(self._pid)

    def _waited(self, begun: float, used: float) -> float:
        wait = time.monotonic() - begun
        return wait if self._pid is None else min(wait, self._used() - used + TICK_SECONDS)

    def reset(self) -> dict[str, Any]:
        self.seconds = []
        return {}

    def response_times(self) -> dict[str, Any]:
        """Return the response times; a pending request counts with its time so far."""
        asked_at, seconds = self._asked_at, list(self.seconds)
        if asked_at is not None:
            seconds.append(self._waited(*asked_at))
        return {"waits": waits_of(seconds), "failures": self.failures}

    def _ask(self, connection: socket.socket) -> None:
        connection.sendall(self._request)
        left = 4
        head = b""
        while left > 0:
            part = connection.recv(left)
            if not part:
                raise ConnectionError("the peer closed the connection")
            left -= len(part)
            if len(head) < 4:
                head += part
                if len(head) == 4:
                    (left,) = struct.unpack(">i", head)


def main() -> None:
    client = SmallClient(settings_from_arguments())
    gc.disable()
    client.start()
    end = time.monotonic() + _LONG_SECONDS
    while len(client.seconds) < 10 and not client.failures and time.monotonic() < end:
        time.sleep(0.01)
    report()
    serve_commands({"reset": client.reset, "waits": client.response_times})


if __name__ == "__main__":
    main()
