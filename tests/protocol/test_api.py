"""The API table against Kafka's own definitions."""

import json
import re
import zipfile
from typing import Any

from sluicegate.protocol.api import APIS, NOT_FLEXIBLE, ApiKey, Treatment, understands
from tests.oracle.definitions import versions
from tests.oracle.kafka_java import KAFKA_NEW, kafka_folder

# Why an API ends below Kafka's own newest version; see sluicegate.protocol.api.
CAPPED = {ApiKey.FETCH: 15}


def kafka_requests() -> dict[int, dict[str, Any]]:
    """Every request a broker takes from clients, by API key."""
    jar = zipfile.ZipFile(kafka_folder(KAFKA_NEW) / f"kafka-clients-{KAFKA_NEW}.jar")
    found = {}
    for name in jar.namelist():
        if re.fullmatch(r"common/message/\w+Request\.json", name):
            spec = json.loads(re.sub(r"^\s*//.*$", "", jar.read(name).decode(), flags=re.MULTILINE))
            if "broker" in spec.get("listeners", ()):
                found[spec["apiKey"]] = spec
    return found


def test_it_has_every_request_that_brokers_take_from_clients() -> None:
    inter_broker = {67}  # AllocateProducerIds is asked by brokers, of the controller
    assert set(APIS) == set(kafka_requests()) - inter_broker


def test_names_versions_and_flexibility_are_kafkas() -> None:
    for key, spec in kafka_requests().items():
        if key not in APIS:
            continue
        api = APIS[key]
        assert api.name == spec["name"].removesuffix("Request")
        assert api.max_version == CAPPED.get(
            ApiKey(key) if key in set(ApiKey) else key, versions(spec["validVersions"]).high
        )  # type: ignore[call-overload]
        flexible = spec["flexibleVersions"]
        assert api.flexible_since == (NOT_FLEXIBLE if flexible == "none" else versions(flexible).low)


def test_every_answer_with_broker_addresses_is_rewritten() -> None:
    """Kafka's definitions name every field; those that hold a host and a port are what a client could follow."""
    jar = zipfile.ZipFile(kafka_folder(KAFKA_NEW) / f"kafka-clients-{KAFKA_NEW}.jar")
    with_addresses = set()
    for key, api in APIS.items():
        text = jar.read(f"common/message/{api.name}Response.json").decode()
        if re.search(r'"name":\s*"Host"', text) and re.search(r'"name":\s*"Port"', text):
            with_addresses.add(key)
    # Fetch names endpoints only above the cap; DescribeQuorum names controllers' listeners, StreamsGroupHeartbeat and
    # StreamsGroupDescribe the clients' own endpoints: none leads to a broker.
    harmless = {ApiKey.FETCH, 55, 88, 89}
    handled = {key for key, api in APIS.items() if api.treatment in (Treatment.REWRITE, Treatment.JUDGE)}
    assert with_addresses - harmless == handled


def test_header_versions() -> None:
    api = APIS[ApiKey.API_VERSIONS]
    assert (api.request_header_version(2), api.request_header_version(3)) == (1, 2)
    assert {api.response_header_version(v) for v in range(5)} == {0}
    assert APIS[ApiKey.PRODUCE].response_header_version(9) == 1


def test_what_is_not_in_the_table_is_not_understood() -> None:
    assert understands(0, 13)
    assert not understands(0, 14)
    assert not understands(0, -1)
    assert not understands(4, 0)
