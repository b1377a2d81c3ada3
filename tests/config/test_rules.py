"""Rules, requests and exemptions are parsed, and each mistake is reported with its key and line."""

import pytest

from tests.config.reading import SMALLEST, load_text, problems_of_text

RULE = SMALLEST + "topics:\n  - match: t\n    rules:\n      - {name: r, %s}\n"
REQUEST = SMALLEST + "requests:\n  - {name: r, %s}\n"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (RULE % "key: {}", "topics[0].rules[0].key: expected at least one key, such as required: true"),
        (RULE % "key: {requird: true}", "topics[0].rules[0].key.requird: no such key; did you mean required?"),
        (RULE % "value: {min_size: 5, max_size: 4}", "topics[0].rules[0].value: min_size 5 is more than max_size 4"),
        (RULE % "headers: {required: tenant}", "rules[0].headers.required: expected a list; write required: [tenant]"),
        (RULE % "headers: {patterns: {a: '/(/'}}", "topics[0].rules[0].headers.patterns.a: not a regular expression"),
        (RULE % "headers: {patterns: a}", "topics[0].rules[0].headers.patterns: expected {name: value}"),
        (RULE % "headers: {required: [a], forbidden: [a]}", "header a is both required and forbidden"),
        (RULE % "batch: {max_records: 0}", "topics[0].rules[0].batch.max_records: expected a whole number"),
        (RULE % "time: {monotonic: true}", "topics[0].rules[0]: rule r: time rules can only be observed"),
        (RULE % "time: {monotonic: false}, mode: observe", "topics[0].rules[0].time.monotonic: expected true"),
        (RULE % "mode: observe", "topics[0].rules[0]: rule r checks nothing"),
        (RULE % "key: {utf8: true}, on_outage: forwards", "expected 'retriable', 'forward' or 'reject'; did you mean"),
        (
            RULE % "options: {a: 1}, key: {utf8: true}",
            "topics[0].rules[0]: rule r: options is only valid with entry_point",
        ),
        (RULE % "value: {schema: {format: avro}}", "a schema requires exactly one of file, text and registry"),
        (RULE % "value: {schema: {registry: main, protovalidate: true}}", "protovalidate needs format: protobuf"),
        (RULE % "value: {json: {max_depth: 501}}", "topics[0].rules[0].value.json.max_depth: expected a whole number"),
        (RULE % "value: {json: , utf8: true}", "rules[0].value.json: the section is empty; write json: {}"),
        (RULE % "key: {utf8: true}}\n      - {name: r, key: {utf8: true}", "topics[0].rules: two rules are named r"),
        (REQUEST % "match: {topics: t}", "requests[0]: rule r checks nothing"),
        (REQUEST % "acks: [quorum]", "requests[0].acks[0]: expected 'all', '1' or '0'"),
        (REQUEST % "codecs: [lz5]", "requests[0].codecs[0]: expected 'none', 'gzip'"),
        (REQUEST % "client_id: '/(/'", "requests[0].client_id: not a regular expression that RE2 accepts"),
        (REQUEST % "software: [{name: x}]", "requests[0].software[0].min_version: this key is required"),
        (REQUEST % "software: [{name: x, min_version: v2}]", "expected a version such as 2.3 or 3.7.0"),
        (REQUEST % "acks: [all]}\n  - {name: r, acks: [all]", "requests: two rules for requests are named r"),
        (SMALLEST + "exempt: [{}]\n", "exempt[0]: expected a client"),
        (SMALLEST + "registries: [main]\n", "registries: expected names, each with keys below it"),
        (SMALLEST + "registries: {main: {url: 'ftp://x'}}\n", "registries.main.url: expected a URL"),
    ],
)
def test_rule_error_reports_key_and_line(text: str, wrong: str) -> None:
    (problem,) = problems_of_text(text)
    assert wrong in problem
    assert problem.startswith("c.yaml:")


def test_sizes_and_counts_of_rules_accept_units() -> None:
    (topic,) = load_text(RULE % "value: {max_size: 1KiB}, headers: {max_size: 4kB, max_count: 0}").config.topics
    assert topic.rules is not None and topic.rules[0].value is not None and topic.rules[0].headers is not None
    assert (topic.rules[0].value.max_size, topic.rules[0].headers.max_size) == (1024, 4000)


def test_a_rule_can_be_set_by_the_environment() -> None:
    environment = {"SLUICEGATE__TOPICS__0__MATCH": "t", "SLUICEGATE__TOPICS__0__RULES": "[{name: r, key: {utf8: yes}}]"}
    (topic,) = load_text(SMALLEST, **environment).config.topics
    assert topic.rules is not None and topic.rules[0].key is not None and topic.rules[0].key.utf8
