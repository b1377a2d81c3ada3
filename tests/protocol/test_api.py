"""The table of APIs agrees with Kafka's own definitions."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from sluicegate.protocol.api import APIS, NOT_FLEXIBLE, Api, ApiHandling, ApiKey, apis_by_key, rewritten
from sluicegate.protocol.layout import ADDRESS, ERROR, INT32, STRING, UUID, LayoutField, array, nodes
from sluicegate.protocol.records.scan import is_compiled
from tests.oracle.definitions import message_definition, message_definitions, parse_versions
from tests.oracle.kafka_java import KAFKA_NEWEST, ROOT

# For the reason why an API ends below Kafka's newest version, see sluicegate.protocol.api.
CAPPED = {ApiKey.FETCH: 15}


def kafka_requests() -> dict[int, dict[str, Any]]:
    """Return every request that a broker accepts from clients, by API key."""
    specs = message_definitions(KAFKA_NEWEST).values()
    return {
        spec["apiKey"]: spec for spec in specs if spec["type"] == "request" and "broker" in spec.get("listeners", ())
    }


def test_the_api_table_has_every_request_that_brokers_accept_from_clients() -> None:
    inter_broker = {67}  # only brokers send AllocateProducerIds, to the controller
    assert set(APIS) == set(kafka_requests()) - inter_broker


def test_rejects_two_apis_with_the_same_key() -> None:
    with pytest.raises(ValueError, match="DescribeCluster and DescribeRacks have the same key, 60"):
        apis_by_key([Api(60, "DescribeCluster", 2, 0), Api(60, "DescribeRacks", 0, 0)])


def test_api_table_equals_kafkas_names_versions_and_flexible_versions() -> None:
    for key, spec in kafka_requests().items():
        if key not in APIS:
            continue
        api = APIS[key]
        assert api.name == spec["name"].removesuffix("Request")
        capped = CAPPED.get(ApiKey(key)) if key in set(ApiKey) else None
        assert api.max_version == (parse_versions(spec["validVersions"]).high if capped is None else capped)
        flexible = spec["flexibleVersions"]
        assert api.flexible_since == (NOT_FLEXIBLE if flexible == "none" else parse_versions(flexible).low)


def test_every_response_with_broker_addresses_is_rewritten() -> None:
    """Kafka's definitions name every field. Clients connect to addresses in fields named host and port."""
    with_addresses = set()
    for key, api in APIS.items():
        text = json.dumps(message_definition(KAFKA_NEWEST, f"{api.name}Response"))
        if re.search(r'"name":\s*"Host"', text) and re.search(r'"name":\s*"Port"', text):
            with_addresses.add(key)
    # Fetch names endpoints only in versions that the proxy does not offer. DescribeQuorum names controllers' listeners;
    # StreamsGroupHeartbeat and StreamsGroupDescribe name clients' endpoints. None of these is a broker's address.
    harmless = {ApiKey.FETCH, 55, 88, 89}
    handled = {key for key, api in APIS.items() if api.handling in (ApiHandling.REWRITE, ApiHandling.VALIDATE)}
    assert with_addresses - harmless == handled, (
        "brokers' addresses in a response would lead clients past the proxy: declare the API with rewritten(...) and "
        f"the layout of the addresses in {[APIS[key].name for key in (with_addresses - harmless) ^ handled]}"
    )


def test_exactly_the_rewritten_apis_declare_a_layout() -> None:
    for api in APIS.values():
        assert (api.handling is ApiHandling.REWRITE) == bool(api.layout), (
            f"{api.name}: declare it with rewritten(...), which takes the layout of its response"
        )


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ((INT32, STRING), "it has no ADDRESS"),
        ((nodes(STRING),), "its nodes(...) have no ADDRESS"),
        ((ADDRESS,), "needs an ERROR beside it"),
        ((array(INT32, ADDRESS, ERROR),), "within an array or a struct is not found"),
        ((array(UUID, array(nodes(ADDRESS))),), "within an array or a struct is not found"),
        ((nodes(ADDRESS), nodes(ADDRESS)), "more than one nodes"),
    ],
)
def test_rejects_layout_without_addresses(layout: tuple[LayoutField, ...], words: str) -> None:
    with pytest.raises(ValueError, match=rf"layout of X: .*{re.escape(words)}"):
        rewritten(Api(300, "X", 0, 0), *layout)


def test_compiled_code_accepts_an_added_api_key() -> None:
    """Runs in a separate process, because compiled modules read the table when they are imported."""
    if not is_compiled():
        pytest.skip("nothing is compiled")
    told = subprocess.run(
        [sys.executable, "-c", _ANY_KEY], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout.split() == ["301"]


_ANY_KEY = """
from sluicegate.protocol.api import APIS, Api
APIS[300] = Api(300, "X", 0, 0)
from sluicegate.proxy.fastpath.fast_path import PathCounts
from sluicegate.proxy.fastpath import fast_path
counts = PathCounts(None, None)
assert counts.by_api() == {}
print(counts.keys)
"""


def test_header_versions_follow_the_flexible_versions_of_an_api() -> None:
    api = APIS[ApiKey.API_VERSIONS]
    assert (api.request_header_version(2), api.request_header_version(3)) == (1, 2)
    assert {api.response_header_version(v) for v in range(6)} == {0}
    assert APIS[ApiKey.PRODUCE].response_header_version(9) == 1
