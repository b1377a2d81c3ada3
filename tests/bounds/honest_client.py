"""Runs the honest client in a separate process. It sends small requests continuously and measures each response time.

Three probes have one request in flight each: one sends Produce and one ApiVersions on permanent connections, and one
sends ApiVersions on a new connection each time.
"""

import gc
import socket
import ssl
import struct
import threading
import time
from typing import Any

from tests.bounds.frames import good_batch, sized_produce_request, sized_request
from tests.bounds.side_process import report, serve_commands, settings_from_arguments
from tests.broker.eventually import eventually

_EVERY_SECONDS = 0.010
_NEW_EVERY_SECONDS = 0.050
_TIMEOUT_SECONDS = 120
_READY_SECONDS = 80  # less than the test waits for
_CLIENT = b"honest"


class Probe(threading.Thread):
    """Sends a request, waits for the response and pauses; the longest wait includes a response that is still due.

    `count`: the responses; `failures`: texts about requests without one.
    """

    def __init__(self, name: str, settings: dict[str, Any], message: bytes, every: float, stays: bool) -> None:
        super().__init__(daemon=True)
        self.label = name
        self._settings = settings
        self._message = message
        self._every = every
        self._stays = stays
        self._socket: socket.socket | None = None
        self.longest = 0.0
        self.count = 0
        self.failures: list[str] = []
        self._asked_at: float | None = None
        self.is_active = True

    def run(self) -> None:
        while True:
            if not self.is_active:
                self._leave()
                time.sleep(self._every)
                continue
            begun = self._asked_at = time.monotonic()
            try:
                self._ask()
            except OSError as error:
                self.failures.append(f"{self.label}: {error!r} after {time.monotonic() - begun:.2f} s")
                self._leave()
            else:
                self.count += 1
            wait = time.monotonic() - begun
            self._asked_at = None
            self.longest = max(self.longest, wait)
            if not self._stays:
                self._leave()
            time.sleep(max(0.001, self._every - wait))

    @property
    def has_left(self) -> bool:
        return not self.is_active and self._socket is None

    def reset(self) -> None:
        self.longest, self.count, self.failures = 0.0, 0, []

    def response_times(self) -> float:
        asked_at = self._asked_at
        return max(self.longest, time.monotonic() - asked_at if asked_at is not None else 0.0)

    def _ask(self) -> None:
        if self._socket is None:
            self._socket = connect(self._settings)
        self._socket.sendall(self._message)
        (size,) = struct.unpack(">i", self._exactly(4))
        self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        assert self._socket is not None
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the peer closed the connection")
            data += part
        return data

    def _leave(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def connect(settings: dict[str, Any]) -> socket.socket:
    plain = socket.create_connection((settings["host"], settings["port"]), _TIMEOUT_SECONDS)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not settings.get("ca_file"):
        return plain
    return ssl.create_default_context(cafile=settings["ca_file"]).wrap_socket(plain, server_hostname="localhost")


def main() -> None:
    settings = settings_from_arguments()
    stored = sized_produce_request(9, {b"honest": [(0, good_batch(time.time_ns() // 1_000_000))]}, client_id=_CLIENT)
    versions = sized_request(18, 2, b"", client_id=_CLIENT)
    probes = [
        Probe("Produce", settings, stored, _EVERY_SECONDS, True),
        Probe("ApiVersions", settings, versions, _EVERY_SECONDS, True),
        Probe("a new connection", settings, versions, _NEW_EVERY_SECONDS, False),
    ]
    gc.disable()
    for probe in probes:
        probe.start()
    try:
        _wait_for_responses(probes, _READY_SECONDS)
    except AssertionError as error:
        report(failed=str(error))
    else:
        report()

    def response_times() -> dict[str, Any]:
        return {
            "waits": {probe.label: probe.response_times() for probe in probes},
            "counts": {probe.label: probe.count for probe in probes},
            "failures": [failure for probe in probes for failure in probe.failures],
        }

    def start() -> dict[str, Any]:
        """Connect, wait for a response to each probe, then reset the measurements."""
        for probe in probes:
            probe.reset()
            probe.is_active = True
        _wait_for_responses(probes)
        for probe in probes:
            probe.reset()
        return {}

    def stop() -> dict[str, Any]:
        for probe in probes:
            probe.is_active = False
        for probe in probes:
            eventually(lambda probe=probe: probe.has_left, _TIMEOUT_SECONDS + 10, f"{probe.label} ends")
        return {}

    serve_commands({"start": start, "waits": response_times, "stop": stop})


def _wait_for_responses(probes: list[Probe], seconds: float = _TIMEOUT_SECONDS) -> None:
    """Wait for a response to each probe. Raises AssertionError with the failures if there is none in time."""
    end = time.monotonic() + seconds
    while waiting := [probe for probe in probes if not probe.count]:
        failures = [failure for probe in waiting for failure in probe.failures[-1:]]
        names = ", ".join(probe.label for probe in waiting)
        assert time.monotonic() < end, f"no response to {names} within {seconds} s; last failures: {failures}"
        time.sleep(0.005)


if __name__ == "__main__":
    main()
