"""A real registry stops, restarts, hangs, drips or sends nonsense while clients write through the proxy."""

import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.registry.apicurio import Apicurio
from tests.registry.conftest import apicurio, registry_process
from tests.registry.relay import guarding_relay, relay_with_login
from tests.registry.stand_in import Answering, StandIn, http_response
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import PRODUCE, RawClient, produce_body, topic_data

__all__ = ["apicurio", "registry_process"]  # fixtures

OK, RETRIABLE, POLICY_VIOLATION, INVALID_RECORD = 0, 7, 44, 87
SECRET = "swordfish"
BODY = {"name": "body", "value": {"schema": {"registry": "main", "subject": "any"}}}


class FaultyRegistryFront:
    """A server in front of the registry: it forwards requests with a login, or handles all as a test needs."""

    def __init__(self, registry: Apicurio) -> None:
        self.instead: Answering | None = None
        self.registry = registry
        self._through = relay_with_login(registry.port, f"me:{SECRET}")
        self.here = StandIn(self._response)

    def _response(self, client: socket.socket, head: bytes) -> bool | None:
        return (self.instead or self._through)(client, head)

    def withhold_response(self, _client: socket.socket, _head: bytes) -> None:
        """Send no response until the fault is over."""
        instead = self.instead
        while self.instead is instead and not self.here.over.wait(0.05):
            pass

    def hang_after_headers(self, client: socket.socket, head: bytes) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        self.withhold_response(client, head)

    def respond_slowly(self, client: socket.socket, head: bytes) -> bool | None:
        self.here.over.wait(0.1)
        return self._through(client, head)

    def drip_headers(self, client: socket.socket, _head: bytes) -> None:
        self.here.drip_bytes(client, b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000)


@pytest.fixture(scope="module")
def faulty_registry(apicurio: Apicurio) -> Iterator[FaultyRegistryFront]:
    made = FaultyRegistryFront(apicurio)
    with made.here:
        yield made


@pytest.fixture(scope="module")
def proxy(
    kafka_bootstrap: str, faulty_registry: FaultyRegistryFront, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxyProcess]:
    """Yield a proxy whose topics are named after their `on.outage` policy; `steady` topics use another registry."""
    topics: list[dict[str, Any]] = [
        {"match": f"{outage}-*", "rules": [BODY | {"on_outage": outage}]}
        for outage in ("retriable", "forward", "reject")
    ]
    steady = {"name": "body", "value": {"schema": {"registry": "steady", "subject": "any"}}}
    topics += [
        {"match": "steady-*", "rules": [steady]},
        {"match": "cel-*", "rules": [{"name": "positive", "cel": "value.amount > 0"}]},
    ]
    with guarding_relay(faulty_registry.registry.port) as other:
        settings = {
            "defaults": DEFAULTS,
            "topics": topics,
            "registries": {
                "main": {"url": f"{faulty_registry.here.url}/apis/ccompat/v7", "username": "me", "password": SECRET},
                "steady": {"url": f"{other.url}/apis/ccompat/v7"},
            },
        }
        process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka_bootstrap, settings)
        try:
            yield process.start()
        finally:
            process.stop()


@pytest.fixture
def create_topic_of_kind(kafka_bootstrap: str) -> Callable[[str], str]:
    return lambda kind: create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix=kind)


@pytest.fixture
def new_schema(apicurio: Apicurio) -> Callable[[], int]:
    """Return a function that registers a new schema and returns its id."""
    return lambda: apicurio.register(
        f"s-{uuid.uuid4().hex}", f'{{"type": "fixed", "size": 1, "name": "f{uuid.uuid4().hex}"}}'
    )


def send_record(proxy: ProxyProcess, topic: str, value: bytes, source: str = "") -> tuple[int, str, float]:
    """Send a record; return code, message and duration (s)."""
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}", timeout=30, source=source) as client:
        data = batch([Rec(time.time_ns() // 1_000_000, value=value)])
        began = time.monotonic()
        asked = client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, data))]))
        response: Any = client.response_to(asked, PRODUCE, 9, PRODUCE_RESPONSE, 30)
        took = time.monotonic() - began
    entry = response["responses"][0]["partition_responses"][0]
    return entry["error_code"], entry.get("error_message") or "", took


def framed_by_id(schema_id: int, data: bytes = b"x") -> bytes:
    return b"\0" + schema_id.to_bytes(4) + data


FAULTS: dict[str, tuple[Callable[[FaultyRegistryFront], Answering], str]] = {
    "hangs": (lambda front: front.withhold_response, "no response within 2 s"),
    "hangs after headers": (lambda front: front.hang_after_headers, "no response within 2 s"),
    "drips": (lambda front: front.drip_headers, "no response within 2 s"),
    "429": (
        lambda _: lambda client, _: client.sendall(http_response("429 No", b"", "Retry-After: 1")),
        "the registry limits the request rate (HTTP 429)",
    ),
    "500": (
        lambda _: lambda client, _: client.sendall(http_response("500 No", b"swordfish")),
        "the registry failed (HTTP 500)",
    ),
    "HTML": (
        lambda _: lambda client, _: client.sendall(http_response("200 OK", b"<html>")),
        "the response is not JSON",
    ),
    "closes": (lambda _: lambda client, _: None, "the server closed the connection without a response"),
    "another login": (
        lambda _: lambda client, _: client.sendall(http_response("401 No")),
        "the registry rejects the login (HTTP 401)",
    ),
    "elsewhere": (
        lambda _: lambda client, _: client.sendall(http_response("302 No", b"", "Location: http://127.0.0.1:1/")),
        "redirects (HTTP 302)",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_each_registry_fault_is_reported_as_an_outage_that_ends_with_it(
    fault: str,
    faulty_registry: FaultyRegistryFront,
    proxy: ProxyProcess,
    create_topic_of_kind: Callable[[str], str],
    new_schema: Callable[[], int],
) -> None:
    topics = {kind: create_topic_of_kind(kind) for kind in ("retriable", "forward", "reject")}
    known, unknown = new_schema(), new_schema()
    eventually(lambda: send_record(proxy, topics["retriable"], framed_by_id(known))[0] == OK, 60)
    make, words = FAULTS[fault]

    faulty_registry.instead = make(faulty_registry)
    try:
        code, message, took = send_record(proxy, topics["retriable"], framed_by_id(unknown))
        assert (code, took < 5) == (RETRIABLE, True), (message, took)
        assert words in message
        assert send_record(proxy, topics["forward"], framed_by_id(unknown))[0] == OK
        code, message, took = send_record(proxy, topics["reject"], framed_by_id(unknown))
        assert (code, took < 1.5) == (POLICY_VIOLATION, True), (message, took)
        assert send_record(proxy, topics["retriable"], framed_by_id(known))[0] == OK, "known schemas still work"
        assert send_record(proxy, topics["retriable"], framed_by_id(known, b"xx"))[0] == INVALID_RECORD
    finally:
        faulty_registry.instead = None

    eventually(
        lambda: send_record(proxy, topics["retriable"], framed_by_id(unknown))[0] == OK, 60, "the end of the outage"
    )
    for text in (proxy.log(), proxy.get("/metrics")[1], str(proxy.violations())):
        assert SECRET not in text


@pytest.mark.long
def test_a_registry_restart_is_an_outage_that_ends(
    faulty_registry: FaultyRegistryFront,
    proxy: ProxyProcess,
    create_topic_of_kind: Callable[[str], str],
    new_schema: Callable[[], int],
) -> None:
    topics = {kind: create_topic_of_kind(kind) for kind in ("retriable", "forward", "reject")}
    known, unknown = new_schema(), new_schema()
    eventually(lambda: send_record(proxy, topics["retriable"], framed_by_id(known))[0] == OK, 60)

    faulty_registry.registry.stop()
    found = {kind: send_record(proxy, topic, framed_by_id(unknown)) for kind, topic in topics.items()}
    assert {kind: code for kind, (code, _, _) in found.items()} == {
        "retriable": RETRIABLE,
        "forward": OK,
        "reject": POLICY_VIOLATION,
    }
    assert "registry main is unavailable" in found["retriable"][1]
    assert send_record(proxy, topics["retriable"], framed_by_id(known))[0] == OK, "known schemas still work"
    assert send_record(proxy, topics["retriable"], framed_by_id(known, b"xx"))[0] == INVALID_RECORD

    faulty_registry.registry.start()  # the registry is in memory, so its schemas are lost and its ids start again
    while (again := new_schema()) <= unknown:
        pass
    eventually(
        lambda: send_record(proxy, topics["retriable"], framed_by_id(again))[0] == OK, 60, "the end of the outage"
    )
    assert send_record(proxy, topics["retriable"], framed_by_id(again, b"xx"))[0] == INVALID_RECORD


def test_a_client_with_many_invented_schemas_blocks_no_other_client(
    faulty_registry: FaultyRegistryFront,
    proxy: ProxyProcess,
    create_topic_of_kind: Callable[[str], str],
    new_schema: Callable[[], int],
) -> None:
    topic, new = create_topic_of_kind("retriable"), new_schema()
    eventually(lambda: send_record(proxy, topic, framed_by_id(new))[0] == OK, 60)
    now = time.time_ns() // 1_000_000
    faulty_registry.instead = faulty_registry.respond_slowly
    try:
        with ExitStack() as stack:
            for number in range(60):
                data = batch([Rec(now, value=framed_by_id(10_000_000 + 30 * number + i)) for i in range(30)])
                client = stack.enter_context(RawClient(f"127.0.0.1:{proxy.broker_port(1)}", source="127.0.0.3"))
                client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, data))]))
            code, message, took = send_record(proxy, topic, framed_by_id(new_schema()), source="127.0.0.2")
    finally:
        faulty_registry.instead = None
    assert (code, took < 2) == (OK, True), (message, took)


def test_batches_without_registry_lookups_do_not_wait_for_a_silent_registry(
    faulty_registry: FaultyRegistryFront,
    proxy: ProxyProcess,
    create_topic_of_kind: Callable[[str], str],
    new_schema: Callable[[], int],
) -> None:
    """The first lookup waits two seconds; other batches in the validating thread and on the event loop do not."""
    late, steady, cel, plain = (create_topic_of_kind(kind) for kind in ("retriable", "steady", "cel", "plain"))
    known, unknown = new_schema(), new_schema()
    eventually(lambda: send_record(proxy, late, framed_by_id(known))[0] == OK, 60)
    # Invented schemas of an earlier test may still use up the look-ups of each second.
    eventually(lambda: all(send_record(proxy, late, framed_by_id(new_schema()))[0] == OK for _ in range(3)), 60)
    results: list[tuple[int, str, float]] = []

    faulty_registry.instead = faulty_registry.withhold_response
    try:
        waiting = threading.Thread(target=lambda: results.append(send_record(proxy, late, framed_by_id(unknown))))
        waiting.start()
        slowest = 0.0
        rounds = 0
        while waiting.is_alive():
            rounds += 1
            for topic, value in (
                (steady, framed_by_id(known)),
                (steady, framed_by_id(new_schema())),
                (late, framed_by_id(known)),
                (cel, b'{"amount": 1}'),
                (plain, b"x"),
            ):
                code, message, took = send_record(proxy, topic, value)
                if waiting.is_alive():
                    assert code == OK, message
                    slowest = max(slowest, took)
    finally:
        faulty_registry.instead = None
    assert results[0][0] == RETRIABLE
    assert results[0][2] > 1.5, results
    assert rounds > 1
    assert slowest < 1
