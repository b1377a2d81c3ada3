"""The examples with registries on the pages about policies work with a real registry that requires their login."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from socket import socket
from types import SimpleNamespace
from typing import Any

import fastavro
import pytest

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import load
from sluicegate.config.model import Config
from sluicegate.pipeline.jobs.audit.policies import policies_of
from sluicegate.proxy.registry.registries import Registries
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.validation.from_keys import rulebook_of
from sluicegate.validation.rulebook import Rulebook
from sluicegate.validation.rules.rule import Part, RuledRecord
from sluicegate.validation.validated_request import ValidatedRequest
from tests.broker.certificates import Authority
from tests.docs.test_policies import ELSEWHERE, EXAMPLES, NOW, SentRequest, rule_names_in, validate_sent
from tests.registry.apicurio import Apicurio
from tests.registry.relay import guarding_relay, server_context
from tests.registry.stand_in import StandIn, http_response
from tests.wire.batches import Rec

SCHEMA = '{"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}'
ORDER = (
    '{"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "double"}, {"name": "lines", "type":'
    ' {"type": "array", "items": {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}}}]}'
)
KEY = '{"type": "string"}'
SECRET = "swordfish"


class CustomCurrencyRule:
    """The page's custom rule: payments must be in the currency of the rule's options."""

    parts = Part.HEADERS
    is_slow = False

    def __init__(self, options: dict[str, str]) -> None:
        self.currency = options["currency"].encode()

    def fault(self, record: RuledRecord) -> str | None:
        return None if (b"currency", self.currency) in record.headers else "it is paid in another currency"


@pytest.fixture(scope="module")
def schema_id(apicurio: Apicurio) -> int:
    return apicurio.register("payments-value", SCHEMA, "JSON")


@pytest.fixture
def example_of(
    apicurio: Apicurio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], tuple[Config, Rulebook]]]:
    """Yield a function that builds the rules of an example, with its registry and files in temporary places."""
    authority = Authority(tmp_path)
    (tmp_path / "password").write_text(f"{SECRET}\n")
    (tmp_path / "key.json").write_text(KEY)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: _Points())
    made: list[Registries] = []
    with guarding_relay(apicurio.port, f"sluicegate:{SECRET}", server_context(authority.sign("registry"))) as there:

        def make_rulebook(example: str) -> tuple[Config, Rulebook]:
            here = example.replace("/etc/sluicegate/payment-key.json", str(tmp_path / "key.json"))
            here = here.replace("/run/secrets/registry", str(tmp_path / "password"))
            here = here.replace("https://registry.internal:8081", f"{there.url}/apis/ccompat/v7")
            here = re.sub(r"(password_file: \S+)}", rf"\1, tls: {{ca_file: {authority.file}}}}}", here)
            config = load(read_yaml(here, "policies.md"), {}).config
            made.append(Registries())
            return config, rulebook_of(config, SchemaRules(made[-1].by_name(config.registries)))

        yield make_rulebook
        for each in made:
            each.by_name({})


class _Points:
    names = frozenset({"our_rule"})

    def __getitem__(self, _name: str) -> SimpleNamespace:
        return SimpleNamespace(load=lambda: CustomCurrencyRule)


def payment_request(
    schema_id: int, value: bytes = b'{"amount": 5}', key: bytes | None = b'"k"', currency: bytes = b"EUR"
) -> SentRequest:
    written = b"\0" + schema_id.to_bytes(4) + value
    return SentRequest("payments", (Rec(NOW, key, written, [(b"currency", currency)]),))


def broken_rules(found: ValidatedRequest) -> tuple[list[str], list[str]]:
    """Return the rules that reject the batch, and the rules that only report it."""
    rejected, observed = found.rejected.get((0, 0)), found.observed.get((0, 0), ())
    sides = ((rejected,) if rejected is not None else (), observed)
    rejecting, reporting = ([name for each in side for name, _ in each.rules] for side in sides)
    return rejecting, reporting


@contextmanager
def rulebooks_of(example: str, subject: str, body: dict[str, Any]) -> Iterator[tuple[Rulebook, Rulebook]]:
    """Yield the rulebook of the proxy and that of `audit`, with a registry of one schema."""

    def respond(client: socket, head: bytes) -> bool:
        versions = [{"subject": subject, "version": 1}]
        client.sendall(http_response("200 OK", json.dumps(versions if b"/versions" in head else body).encode()))
        return True

    with StandIn(respond) as registry:
        config = load(read_yaml(example.replace("http://127.0.0.1:8081", registry.url), "policies.md"), {}).config
        registries = Registries()
        yield (
            rulebook_of(config, SchemaRules(registries.by_name(config.registries))),
            policies_of(config, {}).rulebook(),
        )
        registries.by_name({})


@pytest.mark.parametrize("example", [each for each in EXAMPLES if ELSEWHERE in each and "ours" in each])
def test_every_rule_of_the_policies_page_accepts_and_rejects_as_documented(
    example: str, example_of: Callable[[str], tuple[Config, Rulebook]], schema_id: int
) -> None:
    config, rulebook = example_of(example)
    assert rule_names_in(example) == ["body", "key", "positive", "ours"], "add cases for the new example here"
    assert config.registries["main"].username == "sluicegate"

    assert broken_rules(validate_sent(rulebook, payment_request(schema_id))) == ([], [])
    assert broken_rules(validate_sent(rulebook, payment_request(schema_id, b'{"amount": "5"}'))) == (
        ["body"],
        ["positive"],
    )
    assert broken_rules(validate_sent(rulebook, payment_request(schema_id + 1000))) == (["body"], [])
    assert broken_rules(validate_sent(rulebook, payment_request(schema_id, key=b"7"))) == (["key"], [])
    assert broken_rules(validate_sent(rulebook, payment_request(schema_id, b'{"amount": -5}'))) == ([], ["positive"])
    assert broken_rules(validate_sent(rulebook, payment_request(schema_id, currency=b"USD"))) == (["ours"], [])


@pytest.mark.parametrize("example", [each for each in EXAMPLES if "name: paid" in each])
def test_expression_on_avro_works_as_documented(
    example: str, example_of: Callable[[str], tuple[Config, Rulebook]], apicurio: Apicurio
) -> None:
    config, rulebook = example_of(example)
    schema = fastavro.parse_schema(json.loads(ORDER))
    schema_id = apicurio.register("orders.eu-value", ORDER, "AVRO")

    def rejecting_rules(rulebook: Rulebook, amount: float, sku: str) -> list[str]:
        written = BytesIO()
        fastavro.schemaless_writer(written, schema, {"amount": amount, "lines": [{"sku": sku}]})
        value = b"\0" + schema_id.to_bytes(4) + written.getvalue()
        return broken_rules(validate_sent(rulebook, SentRequest("orders.eu", (Rec(NOW, b"k", value),))))[0]

    for each in (rulebook, policies_of(config, {}).rulebook()):  # the rulebooks of the proxy and of `audit`
        assert [rejecting_rules(each, *order) for order in ((5, "a"), (-5, "a"), (5, ""))] == [[], ["paid"], ["paid"]]


@pytest.mark.parametrize("example", [each for each in EXAMPLES if "conditions: true" in each])
def test_registry_conditions_apply_as_documented(example: str) -> None:
    rules = {"domainRules": [{"name": "paid", "kind": "CONDITION", "type": "CEL", "mode": "WRITE"}]}
    rules["domainRules"][0]["expr"] = "message.amount > 0.0"
    body = {"schemaType": "JSON", "schema": SCHEMA, "ruleSet": rules}

    with rulebooks_of(example, "contracts.eu-value", body) as rulebooks:

        def rejecting_rules(rulebook: Rulebook, value: bytes) -> list[str]:
            return broken_rules(
                validate_sent(rulebook, SentRequest("contracts.eu", (Rec(NOW, b"k", b"\0\0\0\0\7" + value),)))
            )[0]

        for rulebook in rulebooks:
            assert rejecting_rules(rulebook, b'{"amount": 5}') == []
            assert rejecting_rules(rulebook, b'{"amount": -5}') == ["contract"]
            assert rejecting_rules(rulebook, b"{}") == ["contract"]


@pytest.mark.parametrize("example", [each for each in EXAMPLES if "inline_rules: true" in each])
def test_rules_inside_a_schema_apply_as_documented(example: str) -> None:
    age = {"type": "integer", "confluent:rules": [{"name": "adult", "expr": "this >= 18 ? '' : 'too young'"}]}
    body = {"schemaType": "JSON", "schema": json.dumps({"type": "object", "properties": {"age": age}})}

    with rulebooks_of(example, "people.eu-value", body) as rulebooks:
        for rulebook in rulebooks:
            found = [
                validate_sent(rulebook, SentRequest("people.eu", (Rec(NOW, b"k", b"\0\0\0\0\7" + value),)))
                for value in (b"{}", b'{"age": 20}', b'{"age": 18}', b'{"age": 17}')
            ]
            assert [broken_rules(each)[0] for each in found] == [[], [], [], ["inside"]]
            assert "the field age does not meet the rule adult inside its schema" in str(found[3].rejected[0, 0])


@pytest.mark.parametrize("example", [each for each in EXAMPLES if "protovalidate: true" in each])
def test_schema_constraints_apply_as_documented(example: str) -> None:
    line = "message Line { string sku = 1 [(buf.validate.field).string.min_len = 3]; }"
    text = (
        f'syntax = "proto3"; import "buf/validate/validate.proto"; message Order {{ repeated Line lines = 1; }} {line}'
    )
    body = {"schemaType": "PROTOBUF", "schema": text}

    with rulebooks_of(example, "shop.eu-value", body) as rulebooks:
        for rulebook in rulebooks:
            found = [
                validate_sent(rulebook, SentRequest("shop.eu", (Rec(NOW, b"k", b"\0\0\0\0\7\0" + lines),)))
                for lines in (b"", b"\n\5\n\3abc", b"\n\5\n\3abc\n\4\n\2ab")
            ]
            assert [broken_rules(each)[0] for each in found] == [[], [], ["constraints"]]
            assert "lines[1].sku must be at least 3 characters (string.min_len)" in str(found[2].rejected[0, 0])


@pytest.mark.parametrize("example", [each for each in EXAMPLES if "tags: [PII]" in each])
def test_tagged_fields_are_masked_as_documented(example: str) -> None:
    private = {"type": "record", "name": "Notes", "fields": [{"name": "private", "type": ["null", "string"]}]}
    mail = {"name": "mail", "type": "string", "confluent:tags": ["PII"]}
    schema = {"type": "record", "name": "C", "fields": [mail, {"name": "notes", "type": private}]}

    def encoded_customer(value: dict[str, object]) -> SentRequest:
        written = BytesIO()
        fastavro.schemaless_writer(written, fastavro.parse_schema(dict(schema)), value)
        return SentRequest("customers.eu", (Rec(NOW, b"k", b"\0\0\0\0\7" + written.getvalue()),))

    body = {"schemaType": "AVRO", "schema": json.dumps(schema)}
    with rulebooks_of(example, "customers.eu-value", body) as rulebooks:
        for rulebook in rulebooks:
            found = validate_sent(rulebook, encoded_customer({"mail": "me@example.com", "notes": {"private": None}}))
            assert found.masked[0, 0].rules == (("pii", 1),)
            assert broken_rules(validate_sent(rulebook, encoded_customer({"mail": "m", "notes": {"private": "x"}})))[
                0
            ] == ["contact"]


def test_policies_page_contains_an_example_with_a_registry() -> None:
    assert [each for each in EXAMPLES if ELSEWHERE in each]
