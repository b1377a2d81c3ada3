"""Glue's API works with schemas that boto3 registers in moto's server, with signatures as botocore makes them, and with
failures."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.server import ThreadedMotoServer

from sluicegate.config.registries import Registry
from sluicegate.proxy.registry.http import RegistryFailed
from sluicegate.proxy.registry.met_subjects import MetSubjects
from sluicegate.proxy.registry.registries import Registries, http_of
from sluicegate.proxy.registry.schema_compiler import compile_inline
from sluicegate.proxy.registry.survey import RegistrySurvey
from sluicegate.validation.rules.rule import Outage, Side
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema
from tests.registry.stand_in import StandIn, http_response
from tests.registry.test_glue import AVRO, framed_value
from tests.validation.rules.records import record

REGION, KEY_ID, SECRET, TOKEN = "eu-west-1", "AKIDEXAMPLE", "a/planted+secret", "a-session"
KEYS = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}
SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}'


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the machine's own AWS credentials."""
    for name in (*KEYS, "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def aws_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def section_at(url: str, **keys: Any) -> Registry:
    return Registry(type="glue", region=REGION, url=url, **keys)


@pytest.fixture
def moto() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        yield "http://{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()


@pytest.mark.usefixtures("aws_keys")
def test_finds_glue_schema_registered_by_boto3_under_its_topic(moto: str) -> None:
    glue = boto3.client("glue", region_name=REGION, endpoint_url=moto)
    glue.create_registry(RegistryName="ours")
    made = glue.create_schema(
        RegistryId={"RegistryName": "ours"},
        SchemaName="orders",
        DataFormat="AVRO",
        Compatibility="NONE",
        SchemaDefinition=SCHEMA,
    )
    version = UUID(made["SchemaVersionId"])
    good, bad = (record(framed_value(version, data), topic="orders") for data in (b"\x06abc", b"\x06ab"))
    for keys in ({}, {"registry": "ours"}):
        registry = Registries().by_name({"main": section_at(moto, **keys)})["main"]
        with closing(registry):
            rule = HasRegisteredSchema(Side.VALUE, registry)
            assert rule.fault(good) is None
            assert "does not match its Avro schema" in str(rule.fault(bad))
            words = str(rule.fault(record(framed_value(version, b"\x06abc"), topic="payments")))
            assert "not registered under subject payments-value" in words
            assert words.endswith("comes from the serializer's schemaNameGenerationClass")
            assert "does not have" in str(rule.fault(record(framed_value(AVRO, b"\x06abc"), topic="orders")))
    with closing(Registries().by_name({"main": section_at(moto, registry="theirs")})["main"]) as registry:
        words = str(HasRegisteredSchema(Side.VALUE, registry).fault(good))
        assert "not registered under subject orders-value" in words


def body_of(client: socket.socket, head: bytes) -> bytes:
    return client.recv(int(re.findall(rb"Content-Length: (\d+)", head)[0]), socket.MSG_WAITALL)


def signature_of(head: bytes, body: bytes, session: str | None) -> str:
    """Return the signature of a request that botocore makes of its signed headers."""
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
    names = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {"host", "x-amz-date", "x-amz-target"} <= set(names)
    signed = {name: headers[name] for name in names}
    request = AWSRequest("POST", f"http://{headers['host']}/", signed, body)
    request.context["timestamp"] = headers["x-amz-date"]
    auth = SigV4Auth(Credentials(KEY_ID, SECRET, session), "glue", REGION)
    return str(auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request))


@pytest.mark.parametrize("source", ["environment", "shared file", "container"])
def test_glue_request_signature_equals_that_of_botocore(
    source: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bodies: list[bytes] = []

    def respond(client: socket.socket, head: bytes) -> bool:
        size = next(
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
        )
        bodies.append(client.recv(size, socket.MSG_WAITALL))
        client.sendall(http_response("400 Bad", b'{"__type": "EntityNotFoundException", "Message": "swordfish"}'))
        return True

    given = {"AccessKeyId": KEY_ID, "SecretAccessKey": SECRET, "Token": TOKEN, "Expiration": "2099-01-01T00:00:00Z"}
    with StandIn(lambda client, _: client.sendall(http_response("200 OK", json.dumps(given).encode()))) as container:
        if source == "environment":
            for name, value in {**KEYS, "AWS_SESSION_TOKEN": TOKEN}.items():
                monkeypatch.setenv(name, value)
        elif source == "shared file":
            (tmp_path / "credentials").write_text(
                f"[default]\naws_access_key_id={KEY_ID}\naws_secret_access_key={SECRET}\naws_session_token={TOKEN}\n"
            )
        else:
            monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{container.url}/credentials")
        with (
            StandIn(respond) as there,
            closing(Registries().by_name({"main": section_at(there.url)})["main"]) as registry,
        ):
            rule = HasRegisteredSchema(Side.VALUE, registry)
            assert "does not have" in str(rule.fault(record(framed_value(AVRO, b""))))
    assert json.loads(bodies[0]) == {"SchemaVersionId": str(AVRO)}
    assert b"X-Amz-Target: AWSGlue.GetSchemaVersion" in there.heads[0]
    assert f"Signature={signature_of(there.heads[0], bodies[0], TOKEN)}".encode() in there.heads[0]


def test_sends_no_glue_request_without_aws_credentials(moto: str) -> None:
    with closing(http_of("main", section_at(moto))) as http, pytest.raises(RegistryFailed, match="no AWS credentials"):
        http.post("/", {})


@pytest.mark.usefixtures("aws_keys")
@pytest.mark.parametrize(
    ("response", "words"),
    [
        (
            http_response("400 Bad", b'{"__type": "com.amazon#AccessDeniedException"}'),
            r"glue:GetSchemaVersion \(AccessDenied",
        ),
        (http_response("400 Bad", b'{"__type": "swordfish"}'), "is not from AWS Glue: check region and url"),
        (http_response("403 No", b"{}"), "grant the user read access"),
        (http_response("500 Oh", b"{}"), r"the registry failed \(HTTP 500\)"),
        (http_response("200 OK", b'{"Status": "AVAILABLE", "DataFormat": "AVRO"}'), "is not from AWS Glue"),
    ],
)
def test_each_glue_error_response_raises_an_outage_with_a_distinct_message(response: bytes, words: str) -> None:
    def respond(client: socket.socket, _head: bytes) -> None:
        client.sendall(response)

    with StandIn(respond) as there, closing(Registries().by_name({"main": section_at(there.url)})["main"]) as registry:
        with pytest.raises(Outage, match=words) as raised:
            HasRegisteredSchema(Side.VALUE, registry).fault(record(framed_value(AVRO, b"")))
        assert "swordfish" not in str(raised.value)


@pytest.mark.usefixtures("aws_keys")
def test_glue_survey_reads_the_latest_schema_versions_of_matching_topics() -> None:
    """moto lists no schemas: the responses are those of AWS's reference of ListSchemas and GetSchemaVersion."""
    arn = "arn:aws:glue:eu-west-1:123456789012:schema/ours/"

    def respond(client: socket.socket, head: bytes) -> bool:
        size = next(
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
        )
        asked = json.loads(client.recv(size, socket.MSG_WAITALL))
        if b"AWSGlue.ListSchemas" in head:
            page = ["orders", "other"] if "NextToken" not in asked else ["payments-value"]
            body: dict[str, Any] = {"Schemas": [{"SchemaArn": arn + name, "SchemaName": name} for name in page]}
            body |= {} if "NextToken" in asked else {"NextToken": "more"}
        else:
            text = SCHEMA if asked["SchemaId"]["SchemaName"] == "orders" else "{"
            body = {"SchemaVersionId": str(AVRO), "VersionNumber": 3, "Status": "AVAILABLE", "DataFormat": "AVRO"}
            body["SchemaDefinition"] = text
        client.sendall(http_response("200 OK", json.dumps(body).encode()))
        return True

    with StandIn(respond) as there:
        met = MetSubjects(by_side={"value": ["orders", "payments"]})
        surveyed = RegistrySurvey("main", section_at(there.url), met).compile_new_schemas(compile_inline)
    assert (surveyed.usable, surveyed.is_complete) == (1, True), surveyed
    assert [(each.subject, each.version) for each in surveyed.unusable] == [("ours/payments-value", 3)]
