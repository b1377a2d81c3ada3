"""One Produce request contains many topics with different sensitive fields, and a different codec per partition."""

import io
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from kafka.record import MemoryRecords

from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import UNVALIDATED, create_topic
from tests.wire.batches import CODECS, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

MAIL = "me@example.com"
AVRO = {"type": "record", "name": "Customer", "fields": [{"name": "mail", "type": "string"}]}
PROTOBUF = 'syntax = "proto3"; message Customer { string mail = 1; }'
_COUNT = 300
_REJECTED = len(CODECS)  # the partition whose batch contains a value that cannot be masked


def avro_value(mail: str) -> bytes:
    data = io.BytesIO()
    fastavro.schemaless_writer(data, AVRO, {"mail": mail})
    return data.getvalue()


def protobuf_value(mail: str) -> bytes:
    return StringValue(value=mail).SerializeToString()  # field 1 is the string, as in Customer


def json_value(field: str, mail: str) -> bytes:
    return json.dumps({field: mail, "n": 1}).encode()


@dataclass(frozen=True, slots=True)
class SchemaKind:
    """Topics with one policy. `policy`: its keys. `sent` and `stored`: a value before and after masking. `rejected`: a
    value that is rejected."""

    policy: dict[str, Any]
    sent: bytes
    stored: bytes
    rejected: bytes | None = None


def kinds_of_schemas(folder: Path) -> dict[str, SchemaKind]:
    (folder / "customer.avsc").write_text(json.dumps(AVRO))
    (folder / "customer.proto").write_text(PROTOBUF)

    def schema_keys(format: str, **more: str) -> dict[str, str]:
        suffix = {"avro": "avsc", "protobuf": "proto"}[format]
        return {"file": str(folder / f"customer.{suffix}"), "format": format} | more

    def masking_policy(**keys: Any) -> dict[str, Any]:
        return {"sensitive": [{"name": "pii", "action": "mask", **keys}]}

    plain = json_value("mail", MAIL)
    return {
        "mail": SchemaKind(masking_policy(fields=["mail"]), plain, json_value("mail", "***"), b"no JSON"),
        "card": SchemaKind(
            masking_policy(fields=["card"]), json_value("card", "4111"), json_value("card", "***"), b'{"card": 4111}'
        ),
        "avro": SchemaKind(
            masking_policy(fields=["mail"], schema=schema_keys("avro")), avro_value(MAIL), avro_value("***"), b"\xff"
        ),
        "proto": SchemaKind(
            masking_policy(fields=["mail"], schema=schema_keys("protobuf", message="Customer")),
            protobuf_value(MAIL),
            protobuf_value("***"),
            b"\x0a\x7f",
        ),
        "open": SchemaKind({"checks": "none"}, plain, plain),
        "bounded": SchemaKind({"message.timestamp.after.max.ms": "1h"}, plain, plain),
    }


@pytest.fixture(scope="module")
def schema_kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SchemaKind]:
    return kinds_of_schemas(tmp_path_factory.mktemp("schemas"))


@pytest.fixture(scope="module")
def proxy(
    kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory, schema_kinds: dict[str, SchemaKind]
) -> Iterator[ProxyProcess]:
    settings = {"topics": [{"match": f"{name}-*", **kind.policy} for name, kind in schema_kinds.items()]}
    made = ProxyProcess(tmp_path_factory.mktemp("mixed"), kafka_bootstrap, settings)
    try:
        yield made.start()
    finally:
        made.stop()


def sent_batch(value: bytes, codec: str) -> bytes:
    now = time.time_ns() // 1_000_000
    return batch([Rec(now, str(number).encode(), value) for number in range(_COUNT)], CODECS[codec])


@pytest.mark.long
@pytest.mark.parametrize("version", [3, 8, 9])
def test_each_topic_of_one_request_is_masked_by_its_own_policy(
    version: int, kafka_bootstrap: str, proxy: ProxyProcess, schema_kinds: dict[str, SchemaKind]
) -> None:
    codecs = [codec for codec in CODECS if version >= 7 or codec != "zstd"]
    topics = {name: create_topic(kafka_bootstrap, UNVALIDATED, _REJECTED + 1, prefix=name) for name in schema_kinds}
    request = [
        topic_data(
            topics[name],
            *((number, sent_batch(kind.sent, codec)) for number, codec in enumerate(codecs)),
            *([(_REJECTED, sent_batch(kind.rejected, "lz4"))] if kind.rejected is not None else []),
        )
        for name, kind in schema_kinds.items()
    ]
    with RawClient(proxy.bootstrap) as bootstrap:
        node = bootstrap.metadata(topics["mail"])["brokers"][0]

    with RawClient(f"{node['host']}:{node['port']}") as client:
        response = client.produce(version, request)

    assert not isinstance(response, str), response
    errors = {
        (topic["name"], partition["index"]): partition["error_code"]
        for topic in response["responses"]
        for partition in topic["partition_responses"]
    }
    with RawClient(kafka_bootstrap) as direct:
        for name, kind in schema_kinds.items():
            for number, codec in enumerate(codecs):
                stored = MemoryRecords(direct.log_of(topics[name], number)).next_batch()
                assert errors[topics[name], number] == 0, (name, codec)
                assert [(each.key, each.value) for each in stored] == [
                    (str(number).encode(), kind.stored) for number in range(_COUNT)
                ], (name, codec)
            if kind.rejected is not None:
                assert errors[topics[name], _REJECTED] == 87, name
                assert direct.log_of(topics[name], _REJECTED) == b"", name
