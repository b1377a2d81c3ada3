"""The proxy reports that a registry does not respond, with a real registry that is stopped or fails in one look-up."""

import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.condition_views import active_condition_details, wait_until_begun, wait_until_condition_ended
from tests.integration.test_registry_outages import framed_by_id
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.registry.apicurio import Apicurio
from tests.registry.conftest import apicurio, registry_process
from tests.registry.relay import relay_with_login
from tests.registry.stand_in import StandIn, http_response
from tests.registry.test_survey import UNUSABLE
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import PRODUCE, RawClient, produce_body, topic_data

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["apicurio", "registry_process"]  # fixtures

pytestmark = pytest.mark.long

OK, RETRIABLE = 0, 7
CONDITION = "registry_unreachable"
_FIXED = '{{"type": "fixed", "size": 1, "name": "f{name}"}}'


class FailingRegistryFront:
    """A server before the registry: the registry failed (HTTP 500) for paths of which `fails` is true."""

    def __init__(self, port: int) -> None:
        self.fails: Callable[[str], bool] = lambda _path: False
        self._through = relay_with_login(port)
        self.here = StandIn(self._response)

    def _response(self, client: socket.socket, head: bytes) -> bool | None:
        path = head.split(b" ", 2)[1].decode()
        if self.fails(path):
            client.sendall(http_response("500 No"))
            return True
        return self._through(client, head)


@pytest.fixture
def failing_registry(apicurio: Apicurio) -> Iterator[FailingRegistryFront]:
    made = FailingRegistryFront(apicurio.port)
    with made.here:
        yield made


class RetryingProducer:
    """A client that sends a record with a schema and retries until it is stored."""

    def __init__(self, proxy: ProxyProcess, topic: str, client_id: str, schema_id: int) -> None:
        self.codes: list[int] = []
        self._over = threading.Event()
        self._given = (proxy, topic, client_id, schema_id)
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        while not self._over.wait(0.1):
            self.codes.append(send_record(*self._given))

    def stop(self) -> None:
        self._over.set()
        self._thread.join(60)


def send_record(proxy: ProxyProcess, topic: str, client_id: str, schema_id: int) -> int:
    data = batch([Rec(time.time_ns() // 1_000_000, value=framed_by_id(schema_id))])
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}", timeout=30) as client:
        asked = client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, data))]), client_id)
        response: Any = client.response_to(asked, PRODUCE, 9, PRODUCE_RESPONSE, 30)
    code: int = response["responses"][0]["partition_responses"][0]["error_code"]
    return code


def proxy_with_registry(folder: Path, bootstrap: str, url: str, subject: str = "any", workers: int = 1) -> ProxyProcess:
    body = {"name": "body", "value": {"schema": {"registry": "main", "subject": subject}}}
    settings = {
        "defaults": DEFAULTS,
        "workers": workers,
        "topics": [{"match": "orders-*", "rules": [body]}],
        "registries": {"main": {"url": f"{url}/apis/ccompat/v7", "refresh_seconds": 1}},
    }
    return ProxyProcess(folder, bootstrap, settings)


def create_orders_topic(kafka_bootstrap: str) -> str:
    return create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix="orders")


def register_new_schema(apicurio: Apicurio, subject: str = "", **more: Any) -> int:
    return apicurio.register(subject or f"s-{uuid.uuid4().hex}", _FIXED.format(name=uuid.uuid4().hex), **more)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stopped_registry_is_a_condition_that_names_the_waiting_clients(
    kafka_bootstrap: str, apicurio: Apicurio, tmp_path: Path, web_ui: "Page | None", workers: int
) -> None:
    proxy = proxy_with_registry(tmp_path, kafka_bootstrap, f"http://127.0.0.1:{apicurio.port}", workers=workers)
    topic, unknown = create_orders_topic(kafka_bootstrap), register_new_schema(apicurio)
    producers: list[RetryingProducer] = []
    try:
        proxy.start()
        assert send_record(proxy, topic, "billing", register_new_schema(apicurio)) == OK
        apicurio.stop()
        producers += [RetryingProducer(proxy, topic, name, unknown) for name in ("billing", "shipping")]
        eventually(lambda: "2 clients wait" in active_condition_details(proxy).get(CONDITION, ""), what="both clients")
        kind = "schemas by id and their references"  # the survey of subjects fails too, in either order
        eventually(lambda: kind in active_condition_details(proxy)[CONDITION], what=kind)
        detail = wait_until_begun(proxy, CONDITION, web_ui)
        assert detail.startswith("registry main has no usable response for ")
        assert f"{kind}: " in detail or f"{kind} and " in detail
        assert "2 clients wait (billing from 127.0.0.1, shipping from 127.0.0.1), topic " + topic in detail
        assert proxy.get("/readyz")[0] == 200
        assert set(producers[0].codes) == {RETRIABLE}
        for producer in producers:
            producer.stop()

        apicurio.start()
        wait_until_condition_ended(proxy, CONDITION)
    finally:
        for producer in producers:
            producer.stop()
        proxy.stop()
        if apicurio.process is None:
            apicurio.start()


def test_a_registry_that_fails_to_list_subjects_is_a_condition(
    kafka_bootstrap: str,
    apicurio: Apicurio,
    failing_registry: FailingRegistryFront,
    tmp_path: Path,
    web_ui: "Page | None",
) -> None:
    failing_registry.fails = lambda path: path.endswith("/subjects")
    proxy = proxy_with_registry(tmp_path, kafka_bootstrap, failing_registry.here.url)
    try:
        proxy.start()
        detail = wait_until_begun(proxy, CONDITION, web_ui)
        http_response = (
            "registry main has no usable response for the newest schemas of subjects: the registry failed (HTTP 500); "
        )
        assert detail == f"{http_response}no client waits"
        assert send_record(proxy, create_orders_topic(kafka_bootstrap), "billing", register_new_schema(apicurio)) == OK

        failing_registry.fails = lambda _path: False
        wait_until_condition_ended(proxy, CONDITION)
    finally:
        proxy.stop()


def test_a_registry_that_fails_to_name_the_subjects_of_a_schema_is_a_condition(
    kafka_bootstrap: str,
    apicurio: Apicurio,
    failing_registry: FailingRegistryFront,
    tmp_path: Path,
    web_ui: "Page | None",
) -> None:
    """The cached subject stays in use, so that no client notices it."""
    proxy = proxy_with_registry(tmp_path, kafka_bootstrap, failing_registry.here.url, "topic")
    topic = create_orders_topic(kafka_bootstrap)
    known = register_new_schema(apicurio, f"{topic}-value")
    try:
        proxy.start()
        assert send_record(proxy, topic, "billing", known) == OK
        failing_registry.fails = lambda path: path.partition("?")[0].endswith("/versions")
        producer = RetryingProducer(proxy, topic, "billing", known)
        try:
            detail = wait_until_begun(proxy, CONDITION, web_ui)
        finally:
            producer.stop()
        http_response = (
            "registry main has no usable response for the subjects of a schema: the registry failed (HTTP 500); "
        )
        assert detail == f"{http_response}no client waits"
        assert set(producer.codes) == {OK}

        failing_registry.fails = lambda _path: False
        wait_until_condition_ended(proxy, CONDITION)
    finally:
        proxy.stop()


def test_a_registry_that_fails_to_return_a_reference_is_a_condition(
    kafka_bootstrap: str,
    apicurio: Apicurio,
    failing_registry: FailingRegistryFront,
    tmp_path: Path,
    web_ui: "Page | None",
) -> None:
    proxy = proxy_with_registry(tmp_path, kafka_bootstrap, failing_registry.here.url)
    inner, name = f"inner-{uuid.uuid4().hex}", f"r{uuid.uuid4().hex}"
    apicurio.register(inner, f'{{"type": "fixed", "size": 1, "name": "{name}"}}')
    references = [{"name": name, "subject": inner, "version": 1}]
    fields = f'[{{"name": "a", "type": "{name}"}}]'
    outer = apicurio.register(
        f"outer-{uuid.uuid4().hex}",
        f'{{"type": "record", "name": "o{uuid.uuid4().hex}", "fields": {fields}}}',
        references=references,
    )
    topic = create_orders_topic(kafka_bootstrap)
    producer = None
    try:
        proxy.start()
        failing_registry.fails = lambda path: f"/subjects/{inner}/versions/1" in path
        producer = RetryingProducer(proxy, topic, "billing", outer)
        eventually(
            lambda: "1 client waits" in active_condition_details(proxy).get(CONDITION, ""), 30, "a client that waits"
        )
        wait_until_begun(proxy, CONDITION, web_ui)
        kind = "schemas by id and their references"
        eventually(
            lambda: kind in active_condition_details(proxy).get(CONDITION, ""),
            30,
            "a look-up that has failed for long enough",
        )
        failing_registry.fails = lambda _path: False
        wait_until_condition_ended(proxy, CONDITION)
        eventually(lambda: OK in producer.codes, 30, "a stored record")
    finally:
        if producer is not None:
            producer.stop()
        proxy.stop()


def test_a_newest_schema_that_cannot_be_used_is_a_condition(
    kafka_bootstrap: str, apicurio: Apicurio, tmp_path: Path, web_ui: "Page | None"
) -> None:
    subject = f"orders-{uuid.uuid4().hex}-value"
    apicurio.register(subject, UNUSABLE["undefined"][1], "PROTOBUF")
    proxy = proxy_with_registry(tmp_path, kafka_bootstrap, f"http://127.0.0.1:{apicurio.port}", subject="topic")
    try:
        proxy.start()
        assert subject in wait_until_begun(proxy, "schema_unusable", web_ui)
        assert proxy.get("/readyz")[0] == 200
    finally:
        proxy.stop()
