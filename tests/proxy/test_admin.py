"""The admin endpoint: what it says, on which address, and that nobody can block it."""

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from config.address import HostPort
from proxy.admin import AdminServer, Health
from proxy.listeners import CannotListen
from proxy.metrics import Snapshot, Tally, registry_of


def loopbacks() -> list[str]:
    """IPv4's, and IPv6's on a machine that has one."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return ["127.0.0.1"]
    return ["127.0.0.1", "::1"]


@pytest.fixture(params=loopbacks())
def admin(request: pytest.FixtureRequest) -> Iterator[tuple[str, AdminServer, Health]]:
    health = Health()
    server = AdminServer(HostPort(request.param, 0), registry_of(lambda: Snapshot(Tally(), 3)), health)
    yield f"http://{HostPort(request.param, server.port)}", server, health
    server.close()


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_pages(admin: tuple[str, AdminServer, Health]) -> None:
    url, _, health = admin

    assert get(url + "/livez") == (200, "ok\n")
    assert get(url + "/readyz") == (503, "starting\n")
    health.not_ready = None
    assert get(url + "/readyz") == (200, "ok\n")
    assert "sluicegate_in_flight 3.0" in get(url + "/metrics")[1]
    assert get(url + "/else")[0] == 404


def test_who_connects_and_says_nothing_blocks_nobody(admin: tuple[str, AdminServer, Health]) -> None:
    url, server, _ = admin
    with socket.create_connection((url.removeprefix("http://").rpartition(":")[0].strip("[]"), server.port)):
        assert get(url + "/livez")[0] == 200


def test_a_taken_port_is_said_with_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = HostPort("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(CannotListen, match="Address already in use"):
            AdminServer(address, registry_of(lambda: Snapshot(Tally(), 0)), Health())
