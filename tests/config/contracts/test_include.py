"""The key `contracts` adds topic entries with the contracts' rules and owners, and reports mistakes in contracts."""

from pathlib import Path

import pytest

from tests.config.contracts.written import ORDERS, contract_with_fields, load_texts, problems_of_texts

RULES = ["contract.schema", "contract.known-currency"]


@pytest.mark.parametrize(
    ("entries", "mode", "rules", "owner"),
    [
        ("", None, RULES, "orders-team (https://chat.example.com/orders)"),
        ("topics: [{match: orders.v2}]", None, RULES, "orders-team (https://chat.example.com/orders)"),
        ("topics: [{match: 'o*', mode: observe}, {match: orders.v1, mode: mark}]", "observe", RULES, "orders-team"),
        ("topics: [{match: orders.v1, owner: {team: mine}, rules: [{name: r, key: {utf8: true}}]}]", None,
         ["r", *RULES], "mine"),
        ("defaults: {rules: [{name: d, key: {utf8: true}}]}\ntopics: [{match: '/orders.*/'}]", None, ["d", *RULES],
         "orders-team"),
        ("defaults: {rules: [{name: d, key: {utf8: true}}]}\ntopics: [{match: 'o*', rules: []}]", None, RULES,
         "orders-team"),
        ("defaults: {owner: {team: platform}}", None, RULES, "orders-team"),
    ],
)  # fmt: skip
def test_contract_adds_rules_and_a_missing_owner_to_the_matching_topic_entry(
    entries: str, mode: str | None, rules: list[str], owner: str, tmp_path: Path
) -> None:
    loaded = load_texts(tmp_path, f"contracts: '*.odcs.yaml'\n{entries}\n", orders_odcs=ORDERS)

    topic = loaded.config.topics[0]
    assert (topic.match, topic.mode) == ("orders.v1", mode)
    assert [rule.name for rule in topic.rules or ()] == rules
    assert str(topic.owner).startswith(owner)


def test_owner_precedence_is_topic_file_then_contract_then_configuration_item(tmp_path: Path) -> None:
    without = ORDERS.replace("team: {name: orders-team}\n", "")
    item = "contracts: [{path: orders.odcs.yaml, owner: {team: item}}]\n"
    team = {"pay": "owner: {team: files}\ntopics: [{match: orders.v1}]"}

    def owner_of_first_topic(text: str, contract: str, **files: str) -> str:
        return str(load_texts(tmp_path, text, orders_odcs=contract, **files).config.topics[0].owner)

    assert owner_of_first_topic(item + "topic_files: pay.yaml\n", ORDERS, **team) == "files"
    assert owner_of_first_topic(item, ORDERS).startswith("orders-team")
    assert owner_of_first_topic(item, without) == "item"


def test_policy_keys_have_the_source_line_of_their_contract_or_configuration(tmp_path: Path) -> None:
    text = "contracts: '*.odcs.yaml'\ntopics:\n  - {match: a}\n  - match: 'o*'\n    mode: observe\n"
    source = load_texts(tmp_path, text, orders_odcs=ORDERS).source

    def place_of_policy(*path: str | int) -> str:
        return f"{source.place_of(path)} {source.key_of(path)}".replace(str(tmp_path), "F")

    assert place_of_policy("topics", 0, "match") == "F/orders.odcs.yaml:10 schema[0]"
    assert place_of_policy("topics", 0, "mode") == "F/sluicegate.yaml:7 topics[1].mode"
    assert place_of_policy("topics", 0, "rules", 1) == "F/orders.odcs.yaml:18 schema[0].properties[2].quality[0]"
    assert place_of_policy("topics", 2, "mode") == "F/sluicegate.yaml:7 topics[1].mode"


@pytest.mark.parametrize(
    ("text", "contract", "wrong"),
    [
        ("contracts: [{path: c.odcs.yaml, topics: 'pay.*'}]", ORDERS,
         "F/c.odcs.yaml:10: schema[0]: orders.v1 is outside the scope of this contract (F/sluicegate.yaml:3)"),
        ("contracts: ['c.odcs.yaml', 'd.odcs.yaml']", ORDERS,
         "F/d.odcs.yaml:10: schema[0]: orders.v1 already has a contract (F/c.odcs.yaml:10)"),
        ("contracts: c.odcs.yaml", ORDERS.replace("orders.v1", "orders v1"),
         "F/c.odcs.yaml:11: schema[0].physicalName: orders v1 is not a valid topic name"),
        ("contracts: missing.odcs.yaml", ORDERS, "F/missing.odcs.yaml: cannot be read: No such file or directory"),
        ("contracts: [{path: c.odcs.yaml, mode: mark}]", ORDERS, "F/sluicegate.yaml:3: contracts[0].mode: expected "),
        ("contracts: c.odcs.yaml\ntopics: [{match: 'o*', mod: observe}]", ORDERS,
         "F/sluicegate.yaml:4: topics[0].mod: no such key; did you mean mode?"),
        ("contracts: c.odcs.yaml\ntopics: [{match: 'o*', rules: [{name: contract.schema, key: {utf8: true}}]}]", ORDERS,
         "two rules are named contract.schema"),
        ("contracts: [{path: c.odcs.yaml, registry: main}]",
         contract_with_fields("[]").replace("format: json", "format: avro"),
         "rule contract.schema uses registry main, and registries has none"),
    ],
)  # fmt: skip
def test_contract_error_reports_file_and_line(text: str, contract: str, wrong: str, tmp_path: Path) -> None:
    (problem,) = problems_of_texts(tmp_path, f"{text}\n", c_odcs=contract, d_odcs=ORDERS)

    assert wrong in problem


def test_warns_of_contract_without_topics(tmp_path: Path) -> None:
    table = ORDERS.replace('type: kafka, host: "kafka:9092", format: json', "type: custom")

    (warning,) = load_texts(tmp_path, "contracts: c.odcs.yaml\n", c_odcs=table).warnings

    assert "the contract has no rule for a topic" in warning


def test_contract_rules_for_avro_use_the_registry_schema(tmp_path: Path) -> None:
    avro = ORDERS.replace("format: json", "format: avro")
    text = "registries: {main: {url: 'http://h'}}\ncontracts: [{path: c.odcs.yaml, registry: main, mode: observe}]\n"

    loaded = load_texts(tmp_path, text, c_odcs=avro)

    for rule, name in zip(loaded.config.topics[0].rules or (), RULES, strict=True):
        assert rule.value is not None and rule.value.schema_ is not None
        schema = rule.value.schema_
        assert (rule.name, rule.mode, schema.registry, schema.format) == (name, "observe", "main", "avro")
        assert '"enum"' in str(schema.json_schema) or '"minimum": 0' in str(schema.json_schema)
    contract = loaded.source.contracts["orders.v1"]
    assert contract.registry == "main"
    assert [check.name for check in contract.stored] == ["enough", "id.unique", "some-currency", "latency"]
    assert {each.what for each in contract.unchecked} == {"sql", "service level availability"}


def test_avro_contract_without_registry_checks_no_record_property(tmp_path: Path) -> None:
    loaded = load_texts(tmp_path, "contracts: c.odcs.yaml\n", c_odcs=ORDERS.replace("format: json", "format: avro"))

    assert not loaded.config.topics[0].rules
    unchecked = loaded.source.contracts["orders.v1"].unchecked
    assert {each.what for each in unchecked} >= {"schema of avro records", "property id", "known-currency", "sql"}
    assert "set registry" in next(each.why for each in unchecked if each.what == "property id")


@pytest.mark.parametrize(
    ("quality", "why"),
    [
        ("{type: text, description: d}", "checks of type text are not supported"),
        ("{type: custom, engine: soda, implementation: x}", "checks of type custom are not supported"),
        ("{metric: rowCount, mustBe: many}", "mustBe is not a number"),
        ("{metric: rowCount, mustBe: 1, unit: days}", "the unit is days"),
        ("{metric: duplicateValues, mustBe: 1}", "the check names no property"),
        ("{metric: duplicateValues, mustBe: 1, arguments: {properties: [b]}}", "the schema has no property b"),
        ("{metric: duplicateValues, mustBe: 1, arguments: {properties: [[a]]}}", "the schema has no property ['a']"),
    ],
)
def test_reports_unchecked_contract_quality_with_the_reason(quality: str, why: str, tmp_path: Path) -> None:
    contract = contract_with_fields("[{name: a, logicalType: string}]", f"quality: [{quality}]")

    (statement,) = load_texts(tmp_path, "contracts: c.odcs.yaml\n", c_odcs=contract).source.contracts["t"].unchecked

    assert why in statement.why
    assert statement.place.endswith("c.odcs.yaml:12")
