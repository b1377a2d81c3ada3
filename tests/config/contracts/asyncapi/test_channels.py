"""Channels become topics: by servers, addresses, bindings and parameters. Their rules are added to the entries that
apply to the topics."""

from pathlib import Path
from typing import Any

import pytest

from sluicegate.config.values.contract import contract_of
from tests.config.contracts.asyncapi.documents import (
    CONTRACTS,
    SHOP_2,
    SHOP_3,
    channel_with,
    load_document,
    problems_of_document,
)


def matches_of(folder: Path, document: str, text: str = CONTRACTS) -> list[str]:
    return [topic.match for topic in load_document(folder, document, text).config.topics]


def document_with(channel: str, more: str = "", version: str = "3.0.0") -> str:
    """Return a document with this channel `c`; in version 2, with these channels. `more` are further keys."""
    channels = (
        f"{{{channel}}}" if version.startswith("2") else f"{{c: {{{channel}, messages: {{m: {{payload: {{}}}}}}}}}}"
    )
    return (
        f"asyncapi: {version}\ninfo: {{title: t, version: '1'}}\n{more or 'servers: {s: {host: h, protocol: kafka}}'}\n"
        f"channels: {channels}\n"
    )


@pytest.mark.parametrize("document", [SHOP_2, SHOP_3], ids=["2.6", "3.0"])
def test_asyncapi_document_yields_topic_rules_and_the_contact_as_owner(document: str, tmp_path: Path) -> None:
    loaded = load_document(tmp_path, document)

    (topic,) = loaded.config.topics
    assert topic.match == "orders.v1"
    names = ["contract.payload", *("contract.headers", "contract.headers-2", "contract.headers-3"), "contract.key"]
    assert [rule.name for rule in topic.rules or ()] == names
    assert str(topic.owner) == "orders-team (orders@example.com)"
    contract = loaded.source.contracts["orders.v1"]
    assert (contract.version, contract.unchecked) == ("1.4.0", ())
    assert loaded.source.key_of(("topics", 0, "owner", "team")) == "info.contact.team"


@pytest.mark.parametrize(
    ("channel", "matches"),
    [
        ("address: orders", ["orders"]),
        ("address: a/b, bindings: {kafka: {topic: orders}}", ["orders"]),
        ("address: null", []),
        ("bindings: {kafka: {topic: orders}}", ["orders"]),
        ("address: 'o.{region}'", [r"/o\.[^.]+/"]),
        ("address: 'o.{region}', parameters: {region: {enum: [eu, us]}}", ["o.eu", "o.us"]),
        ("address: 'o.{region}.{n}', parameters: {region: {enum: [eu, us]}}", [r"/o\.(eu|us)\.[^.]+/"]),
        ("address: 'o.{region}', parameters: {region: {$ref: '#/components/parameters/r'}}", [r"/o\.[^.]+/"]),
    ],
)
def test_channel_address_or_kafka_binding_sets_the_topic_pattern(
    channel: str, matches: list[str], tmp_path: Path
) -> None:
    more = "servers: {s: {host: h, protocol: kafka}}\ncomponents: {parameters: {r: {description: d}}}"

    assert matches_of(tmp_path, document_with(channel, more)) == matches


@pytest.mark.parametrize(
    ("channels", "matches"),
    [
        ("orders: {publish: {message: {payload: {}}}}", ["orders"]),
        ("'o.{r}': {subscribe: {message: {payload: {}}}, parameters: {r: {schema: {enum: [1, 2]}}}}", ["o.1", "o.2"]),
        ("'o.{r}': {parameters: {r: {schema: {type: boolean, enum: [true]}}}}", ["o.true"]),
        ("'o.{r}': {parameters: {r: {schema: {type: string}}}}", [r"/o\.[^.]+/"]),
        ("a/b: {bindings: {kafka: {topic: orders}}}", ["orders"]),
        ("a: {servers: [q], publish: {message: {payload: {}}}}, b: {servers: [s]}", ["b"]),
    ],
)
def test_asyncapi_version_2_uses_the_channel_name_as_address(channels: str, matches: list[str], tmp_path: Path) -> None:
    more = "servers: {s: {url: h, protocol: kafka}, q: {url: h, protocol: mqtt}}"

    assert matches_of(tmp_path, document_with(channels, more, "2.6.0")) == matches


@pytest.mark.parametrize(
    ("more", "channel", "is_topic"),
    [
        ("servers: {s: {host: h, protocol: kafka-secure}}", "", True),
        ("servers: {s: {host: h, protocol: amqp}}", "", False),
        ("servers: {s: {host: h, protocol: amqp}, k: {host: h, protocol: kafka}}", "", True),
        ("servers: {s: {host: h, protocol: amqp}, k: {host: h, protocol: kafka}}", "servers: [{$ref: '#/servers/s'}]",
         False),
        ("x-none: 1", "", False),
        ("x-none: 1", "bindings: {kafka: {partitions: 3}}", True),
    ],
)  # fmt: skip
def test_only_channels_with_a_kafka_server_or_kafka_binding_become_topics(
    more: str, channel: str, is_topic: bool, tmp_path: Path
) -> None:
    loaded = load_document(tmp_path, document_with(f"address: orders{', ' if channel else ''}{channel}", more))

    assert bool(loaded.config.topics) == is_topic
    assert any(
        "the contract has no rule for a topic: no channel uses the protocol" in each for each in loaded.warnings
    ) == (not is_topic)


@pytest.mark.parametrize(
    ("document", "wrong"),
    [
        (document_with("address: a/b"), "channels.c.address: a/b is not a valid topic name"),
        (document_with("address: [a]"), 'channels.c.address: ["a"] is not of types "null", "string"'),
        (document_with("address: 'o.{r}', parameters: {r: {enum: ['a b']}}"), "which cannot be part of a topic name"),
        (document_with("address: a, servers: [{$ref: '#/servers/z'}]"), "cannot be resolved: there is no z"),
        (
            document_with("a: {servers: [z]}", "servers: {s: {url: h, protocol: kafka}}", "2.6.0"),
            "the document defines no such server",
        ),
        (
            document_with("address: a", version="1.2.0"),
            "asyncapi: versions 2.0 to 2.6, 3.0 and 3.1 of AsyncAPI are read; found 1.2.0",
        ),
        (
            document_with("address: 'o.{a}.{b}', parameters: {a: {enum: x}}"),
            'parameters.a.enum: "x" is not of type "array"',
        ),
        (
            channel_with("{}").replace("messages:", "messages: [1]\n    x-more:"),
            'channels.c.messages: [1] is not of type "object"',
        ),
    ],
)
def test_asyncapi_document_error_reports_file_and_line(document: str, wrong: str, tmp_path: Path) -> None:
    (problem,) = problems_of_document(tmp_path, document)

    assert problem.startswith("F/shop.asyncapi.yaml:")
    assert wrong in problem


def test_rejects_two_channels_with_the_same_topic(tmp_path: Path) -> None:
    document = document_with("address: a").replace("channels: {c:", "channels: {d: {address: a}, c:")

    (problem,) = problems_of_document(tmp_path, document)

    assert "a already has a contract" in problem


PARAMETERS = document_with("address: 'o.{region}.x'")


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("", [(r"/o\.[^.]+\.x/", None)]),
        ("[{match: 'o.*', mode: observe}]", [(r"/o\.[^.]+\.x/", "observe"), ("o.*", "observe")]),
        ("[{match: o.eu.x, mode: observe}]", [("o.eu.x", "observe"), (r"/o\.[^.]+\.x/", None), ("o.eu.x", "observe")]),
        ("[{match: o.eu.y, mode: observe}, {match: 'p*'}, {match: '*', mode: mark}]",
         [(r"/o\.[^.]+\.x/", "mark"), ("o.eu.y", "observe"), ("p*", None), ("*", "mark")]),
    ],
)  # fmt: skip
def test_channel_with_topic_pattern_keeps_the_entries_that_match_it(
    entries: str, expected: list[tuple[str, Any]], tmp_path: Path
) -> None:
    text = f"{CONTRACTS}{f'topics: {entries}' if entries else ''}\n"

    topics = load_document(tmp_path, PARAMETERS, text).config.topics

    assert [(topic.match, topic.mode) for topic in topics] == expected
    copies = len(topics) - entries.count("match")
    assert all([rule.name for rule in topic.rules or ()] == ["contract.payload"] for topic in topics[:copies])


def test_exact_topic_contract_takes_precedence_over_a_pattern_contract(tmp_path: Path) -> None:
    document = PARAMETERS.replace("channels: {c:", "channels: {d: {address: o.eu.x}, c:")

    loaded = load_document(tmp_path, document, f"{CONTRACTS}topics: [{{match: o.eu.x}}]\n")

    assert [topic.match for topic in loaded.config.topics] == ["o.eu.x", r"/o\.[^.]+\.x/", "o.eu.x"]
    contracts = loaded.source.contracts
    found = [contract_of(contracts, name) for name in ("o.eu.x", "o.us.x", "o.us.y", "o.x")]
    assert [None if each is None else each.topic for each in found] == ["o.eu.x", r"/o\.[^.]+\.x/", None, None]


@pytest.mark.parametrize("entry", ["'*.eu.x'", "'/o.eu.*/'", "'o.eu*'"])
def test_rejects_entry_that_matches_only_some_topics_of_a_channel_pattern(entry: str, tmp_path: Path) -> None:
    (problem,) = problems_of_document(tmp_path, PARAMETERS, f"{CONTRACTS}topics: [{{match: {entry}}}]\n")

    assert "list the values of the parameters (enum), or put a wider entry before it" in problem


def test_rejects_channel_pattern_that_exceeds_the_contract_scope(tmp_path: Path) -> None:
    text = "contracts: [{path: shop.asyncapi.yaml, topics: 'o.*'}]\n"
    assert len(matches_of(tmp_path, PARAMETERS, text)) == 1

    (problem,) = problems_of_document(tmp_path, PARAMETERS, text.replace("o.*", "o.eu*"))

    assert "is outside the scope of this contract" in problem
