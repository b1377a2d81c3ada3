"""Each rule in an example of the pages about policies rejects the records that its page names."""

import re
from typing import NamedTuple

import pytest

from sluicegate.config.content_keys import ContentKeys
from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.keys import each_key_of
from sluicegate.config.loading import load
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.proxy.reporting.events.violation_event import shown_beginning
from sluicegate.validation.from_keys import limits_of, rulebook_of
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rulebook import Rulebook
from sluicegate.validation.rules.rule import Client
from sluicegate.validation.validated_request import ValidatedRequest
from tests.oracle.kafka_java import ROOT
from tests.wire.batches import LZ4, NONE, Rec, batch
from tests.wire.raw_client import produce_body, topic_data

PAGES = ("policies", "rules", "schemas", "sensitive-fields", "bad-records")
EXAMPLES = [
    example
    for page in PAGES
    for example in re.findall(
        r"^```yaml\n(.*?)^```", (ROOT / "docs" / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL
    )
]
"""The configurations of all pages, in order."""
ELSEWHERE = "registry:"
"""Examples that need another service; tests/integration and tests/proxy test these."""
NOW = 1_800_000_000_000
LIMITS = ValidationLimits()
TENANT = (b"tenant", b"acme")
Change = dict[str, object]

NOBODY = Client("")


class SentRequest(NamedTuple):
    """A request and its client; by default every example accepts it."""

    topic: str = "orders.eu"
    records: tuple[Rec, ...] = (Rec(NOW, b"k", b"{}", (TENANT,)),)
    codec: int = LZ4
    acks: int = -1
    producer_id: int = 5
    client: Client = Client("10.0.0.1:5", "team-a-1", "librdkafka", "2.3.0", "User:batch-7")


def one_record(key: bytes | None = b"k", value: bytes | None = b"v", *headers: tuple[bytes, bytes | None]) -> Change:
    return {"records": (Rec(NOW, key, value, headers),)}


PAYMENTS = {"topic": "payments.eu"}
REJECTED: dict[str, list[Change]] = {
    "keyed": [one_record(None, b"v", TENANT), one_record(b"", b"v", TENANT), one_record(b"k" * 65, b"v", TENANT)],
    "text": [one_record(b"k", b"\xff", TENANT), one_record(b"k", b"v" * 100_001, TENANT)],
    "tenant": [
        one_record(b"k", b"v"),
        one_record(b"k", b"v", TENANT, (b"password", b"x")),
        one_record(b"k", b"v", (b"tenant", b"1")),
        one_record(b"k", b"v", *[TENANT] * 21),
        one_record(b"k", b"v", TENANT, (b"n", b"v" * 4096)),
    ],
    "json": [one_record(b"k", text, TENANT) for text in (b"{} {}", b'{"a": 1, "a": 2}', b"", b"[" * 21 + b"]" * 21)],
    "from-a-tenant": [
        one_record(b"k", b"{}"),
        one_record(b"k", b'{"amount": 0}', TENANT),
        one_record(b"k", b'{"amount": "1"}', TENANT),
        one_record(b"k", b"{", TENANT),
    ],
    "mail": [
        one_record(b"k", b'{"amount": 1, "email": %b}' % mail, TENANT)
        for mail in (b"null", b"7", b'"a"', b'["a@b"]', b"{}")
    ],
    "small-batches": [{"records": (Rec(NOW, b"k", b"v", (TENANT,)),) * 1001}],
    "some-value": [one_record(b"k", None)],
    "all-acks": [PAYMENTS | {"acks": 1}],
    "no-duplicates": [PAYMENTS | {"producer_id": -1}],
    "compressed": [{"codec": NONE}],
    "known-teams": [{"client": Client("10.0.0.1:5", "app", None, None, "User:batch-7")}],
    "small": [{"records": (Rec(NOW, b"k", bytes(1050000)),), "codec": NONE, "client": Client("a:1", "team-a-1")}],
    "no-old-libraries": [
        {"client": Client("10.0.0.1:5", "team-a-1", software, version)}
        for software, version in (("librdkafka", "1.9.2"), ("apache-kafka-java", "2.8.1"))
    ],
}  # fmt: skip
"""Requests that a rule rejects, by rule, each as a change of a valid request."""
TOLD: dict[str, list[Change]] = {
    "in-order": [{"records": tuple(Rec(NOW - i, b"k", b"v", (TENANT,)) for i in range(2))}],
    "idempotent-everywhere": [{"producer_id": -1}],
}
MARKED: dict[str, list[Change]] = {"telemetry": [{"topic": "telemetry.eu", **one_record(b"k", b"no JSON", TENANT)}]}


def validate_sent(rulebook: Rulebook, sent: SentRequest, limits: ValidationLimits = LIMITS) -> ValidatedRequest:
    state = {"producer_epoch": 0, "base_sequence": 0} if sent.producer_id >= 0 else {}
    data = batch(sent.records, sent.codec, producer_id=sent.producer_id, **state)
    return validated_batch(rulebook, sent.topic, data, sent.client, sent.acks, limits)


def validated_batch(
    rulebook: Rulebook,
    topic: str,
    data: bytes,
    client: Client = NOBODY,
    acks: int = -1,
    limits: ValidationLimits = LIMITS,
) -> ValidatedRequest:
    body = produce_body(9, [topic_data(topic, (0, data))], acks)
    budget = DecompressionBudget(1 << 26, 100, lambda: None)
    return validate_request(
        walk_produce_request(bytearray(body), 9, 0, 100),
        {},
        lambda topic: rulebook.policy_of(topic).for_client(client),
        limits,
        lambda: NOW,
        Decompressor(),
        budget,
        client=client,
    )


def policies_of_example(example: str) -> Rulebook:
    return rulebook_of(load(read_yaml(example, "policies.md"), {}).config)


@pytest.mark.parametrize("example", [each for each in EXAMPLES if ELSEWHERE not in each])
def test_every_policy_example_accepts_a_good_record(example: str) -> None:
    found = validate_sent(policies_of_example(example), SentRequest())
    assert set(found.accepted) == {(0, 0)} and not found.observed


def rule_names_in(example: str) -> list[str]:
    config = load(read_yaml(example, "policies.md"), {}).config
    of_records = [rule.name for keys in (config.defaults, *config.topics) for rule in keys.rules or ()]
    return of_records + [rule.name for rule in config.requests]


CASES = [(rule, example) for example in EXAMPLES if ELSEWHERE not in example for rule in rule_names_in(example)]


@pytest.mark.parametrize(("rule", "example"), CASES, ids=[rule for rule, _ in CASES])
def test_every_rule_of_the_page_rejects_what_the_page_says(rule: str, example: str) -> None:
    assert rule in REJECTED.keys() | TOLD.keys() | MARKED.keys(), (
        f"a page about policies has an example with a rule {rule}: add requests that it rejects to REJECTED (or TOLD "
        f"if it is only observed), each as a change of a valid request"
    )
    for change in REJECTED.get(rule, []):
        found = validate_sent(policies_of_example(example), SentRequest()._replace(**change))
        assert [name for name, _ in found.rejected[0, 0].rules] == [rule], found.rejected
    for change in TOLD.get(rule, []):
        found = validate_sent(policies_of_example(example), SentRequest()._replace(**change))
        assert [name for name, _ in found.observed[0, 0][0].rules] == [rule]
        assert not found.rejected
    for change in MARKED.get(rule, []):
        found = validate_sent(policies_of_example(example), SentRequest()._replace(**change))
        assert [[name for name, _ in each.rules] for each in found.marked[0, 0].findings] == [[rule]]


def test_every_rule_tried_here_is_on_the_page() -> None:
    assert {rule for rule, _ in CASES} >= {*REJECTED, *TOLD}


@pytest.mark.parametrize("key", [key.name for key in each_key_of(ContentKeys)])
def test_each_kind_of_rule_about_a_value_has_an_example(key: str) -> None:
    configs = [load(read_yaml(example, "policies.md"), {}).config for example in EXAMPLES]
    rules = [rule for config in configs for keys in (config.defaults, *config.topics) for rule in keys.rules or ()]
    contents = [content for rule in rules for content in (rule.key, rule.value) if content is not None]
    attributes = {each.name: each.attribute for each in each_key_of(ContentKeys)}

    assert any(getattr(content, attributes[key]) for content in contents), (
        f"no page about policies shows a rule with `value: {{{key}: ...}}`: add an example to docs/rules.md, "
        "and its cases to REJECTED"
    )


def test_the_enforce_example_rejects_for_the_named_clients_and_observes_others() -> None:
    """The client id `team-a-1` is not among the 10 %, because the first 64 bits of its SHA-256 are 39 modulo 100."""
    rulebook = next(policies_of_example(example) for example in EXAMPLES if "enforce:" in example)
    late = (Rec(NOW + 7_200_000, b"k", b"{}", (TENANT,)),)

    def has_rejected_and_observed(topic: str, client_id: str) -> tuple[bool, bool]:
        found = validate_sent(rulebook, SentRequest(topic, late, client=Client("a:1", client_id)))
        return bool(found.rejected), bool(found.observed)

    assert (
        has_rejected_and_observed("orders.eu", "team-a-1")
        == has_rejected_and_observed("orders.eu", "checkout")
        == (True, False)
    )
    assert (
        has_rejected_and_observed("orders.eu", "billing")
        == has_rejected_and_observed("payments.eu", "team-a-1")
        == (False, True)
    )


def test_the_exempt_example_exempts_only_the_named_clients() -> None:
    rulebook = next(policies_of_example(example) for example in EXAMPLES if "exempt:" in example)
    assert rulebook.exempts(Client("a:1", "x", principal="User:mirror-maker"))
    assert rulebook.exempts(Client("a:1", "backfill-3", principal="User:ops"))
    assert not rulebook.exempts(Client("a:1", "backfill-3", principal="User:else"))


def test_the_samples_example_shows_the_beginning_of_bad_records() -> None:
    loaded = load(read_yaml(next(example for example in EXAMPLES if "samples:" in example), "policies.md"), {})
    rulebook, most = rulebook_of(loaded.config), limits_of(loaded.config).max_samples
    late = Rec(NOW + 7_200_000, b"user-1", b"\x1b[2J" + b"x" * 300, (TENANT,))

    found = (
        validate_sent(rulebook, SentRequest("clicks.eu", (late,)), ValidationLimits(max_samples=most))
        .rejected[0, 0]
        .bad_records
    )
    other = (
        validate_sent(rulebook, SentRequest("orders", (late,)), ValidationLimits(max_samples=most))
        .rejected[0, 0]
        .bad_records
    )

    assert (most, other[0].contents) == (10, None)
    assert found[0].contents is not None
    key, value = map(shown_beginning, found[0].contents)
    assert key == {"size": 6, "text": "user-1"}
    assert value == {"size": 304, "text": "\\x1b[2J" + "x" * 252}
