"""For spellings that people try, each error contains the correct line, and that line is valid."""

import re
from collections.abc import Iterator

import pytest
import yaml

from sluicegate.config.keys import Key, each_key_of, is_list
from sluicegate.config.model import Config
from sluicegate.config.reference.page import sections
from tests.config.reading import SMALLEST, load_text, problems_of_text

RULE = SMALLEST + "defaults:\n  rules:\n    - name: r\n      "
REQUEST = SMALLEST + "requests:\n  - name: r\n    "
TRIED = {
    RULE + "value: {json: true}": "json: {}",
    RULE + "value: {avro: r.avsc}": "schema: {file: r.avsc, format: avro}",
    RULE + "value: {protobuf: r.proto}": "schema: {file: r.proto, format: protobuf, message: …}",
    RULE + "value: {schema: r.avsc}": "schema: {file: r.avsc, format: avro}",
    RULE + "value: json": "value: {json: {}}",
    RULE + "value: {utf8: {}}": "utf8: true",
    RULE + "key: required": "key: {required: true}",
    RULE + "headers: {required: tenant}": "required: [tenant]",
    RULE + "headers: {forbidden: 'a, b'}": "forbidden: [a, b]",
    RULE + "batch: 500": "batch: {max_records: 500}",
    RULE + "key: {utf8: true}\n      mode: warn": "mode: observe",
    REQUEST + "acks: all": "acks: [all]",
    REQUEST + "acks: -1": "acks: [all]",
    REQUEST + "acks: [-1]": "acks: [all]",
    REQUEST + "acks: [-1, 1]": "acks: [all, 1]",
    REQUEST + "codecs: zstd": "codecs: [zstd]",
    REQUEST + "compression: zstd": "codecs: [zstd]",
    REQUEST + "software: librdkafka": "software: [{name: librdkafka, min_version: …}]",
    REQUEST + "enable.idempotence: true": "idempotent: true",
    SMALLEST + "defaults: {cleanup.policy: [compact, delete]}": "cleanup.policy: compact,delete",
    SMALLEST + "defaults: {fix: unit}": "fix: {timestamp: unit}",
    SMALLEST + "defaults: {mode: off}": "checks: none",
    SMALLEST + "defaults: {checks: false}": "checks: none",
    SMALLEST + "topics: [{match: a, quarantine: true}]": "quarantine: orders-dead-letters",
    SMALLEST + "topics: [{name: orders}]": "match: orders",
    SMALLEST + "topics: [orders]": "- match: orders",
    SMALLEST + "violations: v.jsonl": "violations: {file: v.jsonl}",
    SMALLEST + "violations: {file: true}": "file: violations.jsonl",
    SMALLEST + "violations: {topic: yes}": "topic: sluicegate-violations",
    SMALLEST + "admin: 127.0.0.1:9650": 'admin: {listen: "127.0.0.1:9650"}',
    SMALLEST + "log: debug": "log: {level: debug}",
    SMALLEST + "otel: 'http://h:4318'": 'otel: {endpoint: "http://h:4318"}',
    SMALLEST + "exempt: [mirror]": "- principal: mirror",
    "upstream: {bootstrap: h:1, tls: true}\nlisten: {bootstrap: '127.0.0.1:2'}": "tls: {}",
    "upstream: {bootstrap: h:1, ssl: true}\nlisten: {bootstrap: '127.0.0.1:2'}": "tls: {}",
    "upstream: {bootstrap.servers: h}\nlisten: {bootstrap: '127.0.0.1:2'}": "bootstrap: h",
    "upstream: {bootstrap: h:1, sasl: PLAIN}\nlisten: {bootstrap: '127.0.0.1:2'}": (
        "sasl: {mechanism: PLAIN, username: …, password_file: …}"
    ),
    "upstream: {bootstrap: h:1}\nlisten: {bootstrap: '127.0.0.1:2', tls: true}": (
        "tls: {certificate_file: …, key_file: …}"
    ),
    "upstream: {bootstrap: h:1}\nlisten: {bootstrap: '127.0.0.1:2', proxy_protocol: true}": "proxy_protocol: required",
}


@pytest.mark.parametrize(("text", "line"), TRIED.items(), ids=[text.splitlines()[-1] for text in TRIED])
def test_common_misspelling_is_rejected_with_a_correction(text: str, line: str) -> None:
    found = problems_of_text(text + "\n")

    corrections = [problem for problem in found if problem.endswith(f"; write {line}")]
    assert len(corrections) == 1, found
    assert re.match(r"c\.yaml:\d+: [\w.\[\]]+: ", corrections[0])
    yaml.safe_load(line)


@pytest.mark.parametrize("word", ["false", "off"])
def test_disabled_section_is_rejected_with_advice_to_omit_it(word: str) -> None:
    (found,) = problems_of_text(f"upstream: {{bootstrap: h:1, tls: {word}}}\nlisten: {{bootstrap: '127.0.0.1:2'}}\n")

    assert found == "c.yaml:1: upstream.tls: expected a section; omit the key"


def test_rejects_acks_minus_one_with_advice_to_write_all() -> None:
    (found,) = problems_of_text(REQUEST + "acks: [-1]\n")

    assert found == "c.yaml:5: requests[0].acks[0]: expected 'all', '1' or '0'; found -1; write acks: [all]"


def test_error_for_scalar_in_place_of_a_section_hides_its_value() -> None:
    for section in ("admin: hunter2", "registries: {main: hunter2}", "otel: hunter2"):
        assert not any("hunter2" in problem for problem in problems_of_text(SMALLEST + section))
    assert (
        "hunter2"
        not in problems_of_text(f"upstream: {{bootstrap: h:1, sasl: hunter2}}\n{SMALLEST.splitlines()[1]}\n")[0]
    )


def keys_with_corrections() -> Iterator[tuple[str, Key]]:
    for section in sections():
        for key in each_key_of(section.model):
            if key.corrections or key.misnomers:
                yield section.name, key


@pytest.mark.parametrize(
    ("section", "key"), list(keys_with_corrections()), ids=lambda each: getattr(each, "name", each)
)
def test_declared_corrections_are_valid_yaml_with_known_keys(section: str, key: Key) -> None:
    model = next(each.model for each in sections() if each.name == section)
    known = {each.name for each in each_key_of(model)}

    for text in (*key.corrections.values(), *key.misnomers.values()):
        line = text.replace("{value}", "a")
        if ": " in line and not line.startswith("{"):
            assert set(yaml.safe_load(line)) <= known, line
        else:
            yaml.safe_load(line)
    assert not key.misnomers.keys() & known
    if is_list(key.annotation):
        assert all(":" not in text for text in key.corrections.values())


@pytest.mark.parametrize("pattern", ["/orders", "orders/", "/", "eu/orders"])
def test_rejects_regular_expression_with_only_one_slash(pattern: str) -> None:
    (found,) = problems_of_text(SMALLEST + f"topics:\n  - match: {pattern}\n")

    assert found.startswith("c.yaml:4: topics[0].match: no topic has a slash in its name; a regular expression has one")
    assert found.endswith("'/orders/'" if pattern in ("/orders", "orders/") else "/'")


def test_reports_every_error_of_a_rule() -> None:
    rule = "{name: r, time: {monotonic: true}, options: {a: 1}}"

    found = problems_of_text(RULE.replace("- name: r\n      ", f"- {rule}\n"))

    assert [problem.partition("rule r: ")[2].partition(" ")[0] for problem in found] == ["options", "time"]


def test_every_unknown_registry_is_reported_with_its_line() -> None:
    rules = "defaults:\n  rules:\n"
    for number, name in enumerate(("a", "b")):
        rules += f"    - {{name: r{number}, value: {{schema: {{registry: {name}}}}}}}\n"

    found = problems_of_text(SMALLEST + rules)

    assert [problem.partition(": rule")[0] for problem in found] == [
        "c.yaml:5: defaults.rules[0].value.schema.registry",
        "c.yaml:6: defaults.rules[1].value.schema.registry",
    ]


@pytest.mark.parametrize("text", ["defaults:\n\tmode: observe\n", "topics:\n  - match: a\n\t- match: b\n"])
def test_tab_indentation_error_reports_its_line(text: str) -> None:
    (found,) = problems_of_text(SMALLEST + text)

    line = 2 + next(number for number, each in enumerate(text.splitlines(), 1) if "\t" in each)
    assert found == f"c.yaml:{line}: not YAML: line {line} is indented with a tab; indent with spaces"


@pytest.mark.parametrize(
    ("variable", "right"),
    [
        ("SLUICEGATE_LISTEN_BOOTSTRAP", "SLUICEGATE__LISTEN__BOOTSTRAP"),
        ("SLUICEGATE_DRAIN_TIMEOUT_SECONDS", "SLUICEGATE__DRAIN_TIMEOUT_SECONDS"),
        ("SLUICEGATE_UPSTREAM_SASL_PASSWORD", "SLUICEGATE__UPSTREAM__SASL__PASSWORD"),
    ],
)
def test_rejects_environment_key_with_single_underscores(variable: str, right: str) -> None:
    (found,) = problems_of_text(SMALLEST, **{variable: "S3CRET"})

    expected = f"unknown variable; separate the parts by two underscores: {right}"
    assert found == f"environment {variable}: {expected}"


def test_ignores_unrelated_environment_variables_with_single_underscores() -> None:
    names = ("SLUICEGATE_SERVICE_HOST", "SLUICEGATE_PORT_9092_TCP_ADDR", "SLUICEGATE_REVISION", "SLUICEGATE_PORT")

    assert load_text(SMALLEST, **dict.fromkeys(names, "x")).config == load_text(SMALLEST).config


def test_declared_corrections_are_found_in_nested_sections() -> None:
    assert any(section.model is Config for section in sections())
    assert {section for section, _ in keys_with_corrections()} >= {"topics[]", "requests[]", "upstream", "listen.tls"}
