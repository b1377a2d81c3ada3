"""If a server at a registry's address misbehaves, a look-up ends in time, uses little memory, and reveals no secret."""

import json
import re
import socket
import warnings
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import monotonic
from uuid import UUID

import pytest

from sluicegate.config.values.password import Password, SecretText
from sluicegate.proxy.registry.http import (
    MAX_RESPONSE_BYTES,
    JsonResponse,
    RegistryFailed,
    RegistryHttp,
    ResponseTooLarge,
)
from sluicegate.proxy.registry.login import BasicLogin
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.validation.rules.rule import Side
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema
from tests.registry.stand_in import StandIn, http_response
from tests.validation.rules.records import record

SECRET = "swordfish"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def basic_login() -> BasicLogin:
    return BasicLogin("me", Password("registries.password_file", SecretText(SECRET), None))


def failure_of(url: str, seconds: float = 5) -> RegistryFailed:
    """Return the error of a look-up; it shows no password."""
    with (
        pytest.raises(RegistryFailed) as raised,
        closing(RegistryHttp(url, basic_login(), look_up_seconds=seconds)) as http,
    ):
        http.get("/schemas/ids/1")
    for hidden in (SECRET, b64encode(f"me:{SECRET}".encode()).decode()):
        assert hidden not in f"{raised.value} {raised.value.__cause__}"
    return raised.value


@pytest.mark.parametrize(
    "said_slowly",
    [
        b"HTTP/1.1 200 O" + b"K" * 10_000,
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"{" * 10_000,
        CHUNKED + b"0" * 10_000,
        CHUNKED + b"0\r\n" + b"X: y\r\n" * 10_000,
    ],
    ids=["status", "header", "interim answers", "body", "chunk size", "trailer"],
)
def test_registry_response_sent_byte_by_byte_times_out(said_slowly: bytes) -> None:
    with StandIn(lambda client, _: there.drip_bytes(client, said_slowly)) as there:
        began = monotonic()
        assert str(failure_of(there.url, 0.4)) == "no response within 0.4 s"
        assert monotonic() - began < 3


def test_all_requests_of_a_registry_look_up_share_one_deadline() -> None:
    def respond_late(client: socket.socket, _: bytes) -> bool:
        there.over.wait(0.15)
        client.sendall(http_response("200 OK", b"{}"))
        return True

    with StandIn(respond_late) as there, closing(RegistryHttp(there.url, look_up_seconds=0.5)) as http:
        http.begin()
        began = monotonic()
        with pytest.raises(RegistryFailed, match=r"no response within 0\.5 s"):
            for _ in range(100):
                http.get("/schemas/ids/1")
        assert monotonic() - began < 3
        http.begin()
        assert http.get("/schemas/ids/1") == JsonResponse(200, {})


def respond_endlessly(*parts: bytes) -> Callable[[socket.socket, bytes], None]:
    """Sends the first part, then the second repeatedly, until the client stops reading."""

    def respond(client: socket.socket, _: bytes) -> None:
        client.sendall(parts[0])
        while True:
            client.sendall(parts[1])

    return respond


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n", b"x" * 65536),
        (CHUNKED, b"10000\r\n" + b"x" * 65536 + b"\r\n"),
        (CHUNKED + b"7fffffffffffffff\r\n", b"x" * 65536),
        (CHUNKED + b"0\r\n", b"X: y\r\n" * 1000),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    ],
    ids=["until closed", "announced", "chunks", "one chunk", "trailers", "interim answers"],
)
def test_reads_endless_registry_response_only_up_to_the_limit(first: bytes, then: bytes) -> None:
    with StandIn(respond_endlessly(first, then)) as there:
        failure = failure_of(there.url, 60)
    assert isinstance(failure, ResponseTooLarge)
    assert str(failure) == f"the server sent a response of more than {MAX_RESPONSE_BYTES} bytes"


def test_endless_registry_response_headers_are_invalid_http() -> None:
    with StandIn(respond_endlessly(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 1000)) as there:
        assert str(failure_of(there.url)) == "the response is not HTTP (HTTPException)"


def test_rejects_registry_response_with_too_many_json_elements() -> None:
    body = b"[" + b"[]," * 300_000 + b"1]"
    with StandIn(lambda client, _: client.sendall(http_response("200 OK", body))) as there:
        assert str(failure_of(there.url)) == "the server sent a response of more than 200000 parts"


def test_registry_redirects_are_not_followed() -> None:
    with StandIn(lambda _client, _head: None) as elsewhere:
        to = f"Location: {elsewhere.url}/schemas/ids/1"
        with StandIn(lambda client, _: client.sendall(http_response("301 Moved", b"", to))) as there:
            assert "redirects (HTTP 301), and redirects are not followed" in str(failure_of(there.url))
            assert b"Authorization: Basic" in there.heads[0]
        assert elsewhere.heads == []


@pytest.mark.parametrize(
    ("respond", "words", "wait"),
    [
        (http_response("429 Slow down", b"", "Retry-After: 7"), "the registry limits the request rate (HTTP 429)", 7),
        (http_response("503 Busy", b"", "Retry-After: 120"), "the registry failed (HTTP 503)", 120),
        (
            http_response("503 Busy", b"", "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT"),
            "the registry failed (HTTP 503)",
            0,
        ),
        (http_response("500 Oh", b"<html>swordfish"), "the registry failed (HTTP 500)", 0),
        (http_response("200 OK", b"<html>swordfish"), "is not JSON: set url to the registry's Confluent API", 0),
        (http_response("200 OK", b"[" * 100_000), "is not JSON", 0),
        (http_response("401 No"), "the registry rejects the login (HTTP 401): check username and password_file", 0),
        (http_response("403 No"), "the registry denies this login read access (HTTP 403)", 0),
        (http_response("200 OK", b"{}")[:-1], "the server closed the connection in the middle of a response", 0),
        (CHUNKED + b"5\r\n{}", "the server closed the connection in the middle of a response", 0),
        (b"HTTP/1.1 20", "the server does not use HTTP", 0),
        (b"", "the server closed the connection without a response", 0),
        (b"\x15\x03\x03\x00\x02\x02\x46", "the server does not use HTTP, or accepts only HTTPS", 0),
        (CHUNKED + b"-5\r\n", "the server closed the connection in the middle of a response", 0),
    ],
)
def test_each_invalid_registry_response_has_a_distinct_message(respond: bytes, words: str, wait: float) -> None:
    with StandIn(lambda client, _: client.sendall(respond)) as there:
        failure = failure_of(there.url)
    assert words in str(failure)
    assert failure.retry_after_seconds == wait


def test_registry_errors_do_not_quote_an_echoed_request() -> None:
    with StandIn(lambda client, head: client.sendall(head)) as there:
        failure_of(there.url)
    with StandIn(lambda client, head: client.sendall(head.partition(b"\r\n")[2])) as there:
        failure_of(there.url)


def test_registry_connection_is_reused_and_reopened_after_a_close() -> None:
    def respond_every_second_time(client: socket.socket, _: bytes) -> bool:
        client.sendall(http_response("200 OK", b"{}"))
        return len(there.heads) % 2 == 1  # every second response is the last one on its connection

    with StandIn(respond_every_second_time) as there:
        with closing(RegistryHttp(there.url)) as http:
            for _ in range(6):
                assert http.get("/schemas/ids/1") == JsonResponse(200, {})
        assert len(there.heads) == 6


def test_discarded_registry_client_closes_its_connection() -> None:
    """Python warns of each socket that is freed without having been closed."""

    def respond(client: socket.socket, _head: bytes) -> bool:
        client.sendall(http_response("200 OK", b"[]"))
        return True

    with StandIn(respond) as registry, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        http = RegistryHttp(registry.url)
        assert http.get("/subjects") == JsonResponse(200, [])
        del http

    assert [str(each.message) for each in warned] == []


def test_registry_password_file_changes_apply_and_a_missing_file_keeps_the_password(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("first\n")
    with StandIn(lambda client, _: bool(client.sendall(http_response("200 OK", b"{}"))) or True) as there:
        me = BasicLogin("me", Password("registries.password_file", None, str(file)))
        with closing(RegistryHttp(there.url, me)) as http:
            http.get("/schemas/ids/1")
            file.write_text("second\n")
            http.get("/schemas/ids/1")
            file.unlink()
            http.get("/schemas/ids/1")
            file.write_text("")
            with pytest.raises(RegistryFailed, match="password is empty"):
                http.get("/schemas/ids/1")
    for head, password in zip(there.heads, (b"first", b"second", b"second"), strict=True):
        assert b64encode(b"me:" + password) in head


def test_refused_registry_connection_and_invalid_host_name_have_messages() -> None:
    with StandIn(lambda _client, _head: None) as there:
        url = there.url
    assert str(failure_of(url)) == "Connection refused"
    assert "is not a host name" in str(failure_of("http://a..b"))


def test_schema_by_guid_is_requested_with_the_paths_of_confluents_api() -> None:
    """Apicurio has no such GUIDs. The paths and bodies are those of Confluent's documentation."""
    guid = UUID("89be4d5b-d5b8-9d0b-5de4-b3ec58bbd0bb")
    schema = b'{"guid": "89be4d5b-d5b8-9d0b-5de4-b3ec58bbd0bb", "schemaType": "AVRO", "schema": "\\"long\\""}'

    def respond(client: socket.socket, head: bytes) -> bool:
        method, path, _ = head.split(b" ", 2)
        if method == b"POST":
            size = int(re.findall(rb"Content-Length: (\d+)", head)[0])
            asked.append((path, json.loads(client.recv(size, socket.MSG_WAITALL))))
        is_there = path in (b"/schemas/guids/89be4d5b-d5b8-9d0b-5de4-b3ec58bbd0bb", b"/subjects/orders-value")
        missing = b'{"error_code": 40401, "message": "Subject not found."}'
        client.sendall(http_response("200 OK", schema) if is_there else http_response("404 Not Found", missing))
        return True

    asked: list[tuple[bytes, object]] = []
    named = ((b"__value_schema_id", b"\x01" + guid.bytes),)
    with StandIn(respond) as there, closing(SchemaRegistry("main", RegistryHttp(there.url))) as registry:
        rule = HasRegisteredSchema(Side.VALUE, registry)
        assert rule.fault(record(b"\x02", headers=named, topic="orders")) is None
        assert "does not match its Avro schema" in str(rule.fault(record(b"", headers=named, topic="orders")))
        words = str(rule.fault(record(b"\x02", headers=named, topic="payments")))
        assert "not registered under subject payments-value" in words
    body = {"schema": '"long"', "schemaType": "AVRO"}
    assert asked == [(b"/subjects/orders-value", body), (b"/subjects/payments-value", body)]
