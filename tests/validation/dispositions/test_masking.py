"""No value of a sensitive field is forwarded in clear text, in any mode. kafka-python reads the batches back."""

import json
from typing import Any

import pytest
from kafka.record import MemoryRecords

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import ConfigError, load
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.proxy.rules_process.messages import EvaluatorKind, Specification
from sluicegate.proxy.rules_process.stoppable import StoppableContent
from sluicegate.validation.from_keys import limits_of, rulebook_of
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rulebook import SuspendedTopics
from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.from_keys import INLINE_RULES, RuleMaker
from sluicegate.validation.rules.rule import Client, Outage, RuleUnusable
from sluicegate.validation.rules.schemas.content import SchemaLanguage
from sluicegate.validation.rules.schemas.framing import ConfluentFraming
from sluicegate.validation.rules.schemas.registered_schema import RegisteredSchema, UnknownSchema
from sluicegate.validation.rules.schemas.wire_format import SchemaId
from sluicegate.validation.validated_request import ValidatedRequest
from tests.wire.batches import CODECS, Rec, batch, message
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
FILE = """
upstream: {bootstrap: ["127.0.0.1:9"]}
listen: {bootstrap: "127.0.0.1:9"}
topics:
  - match: t
    message.timestamp.before.max.ms: 1h
    sensitive: [{name: mail, action: mask, fields: [mail]}]
    MORE
"""
SECRET = b'{"mail": "me@example.com", "n": 1.0}'
NO_PROCESS: Any = None
ELSEWHERE = StoppableContent(Specification(EvaluatorKind.AVRO, b""), None, NO_PROCESS)
MASKED = b'{"mail": "***", "n": 1.0}'
MODES = {
    "reject": "mode: reject",
    "observe": "mode: observe",
    "not enforced": "enforce: {clients: [other]}",
    "suspended": "mode: reject",
    "exempt": "mode: reject",
}


class OneSchema:
    """A registry with one schema; None: it does not respond."""

    name = "main"
    framing = ConfluentFraming()

    def __init__(self, schema: RegisteredSchema | None) -> None:
        self._schema = schema

    def known(self, _schema_id: SchemaId) -> RegisteredSchema | None:
        return self._schema

    def schema(self, schema_id: SchemaId) -> RegisteredSchema:
        if self._schema is None:
            raise Outage("registry main does not respond")
        if schema_id != 7:
            raise UnknownSchema
        return self._schema

    def is_registered_under(self, _schema_id: SchemaId, _subject: str) -> bool:
        return True

    def count_encrypted(self, _part: object) -> None:
        return


AVRO = RegisteredSchema(
    SchemaLanguage.AVRO,
    avro_content('{"type": "record", "name": "R", "fields": [{"name": "mail", "type": ["null", "string"]}]}'),
)


def policy_of(kind: str, more: str, maker: RuleMaker = INLINE_RULES, file: str = FILE) -> TopicPolicy:
    config = load(read_yaml(file.replace("MORE", more), "f"), {}).config
    rulebook = rulebook_of(config, maker).with_suspended(SuspendedTopics(everywhere=kind == "suspended"))
    policy = rulebook.policy_of("t").for_client(Client("a:1", "me"))
    return policy.for_exempt() if kind == "exempt" else policy


def validate_batch(data: bytes, kind: str = "reject", more: str | None = None, version: int = 9) -> ValidatedRequest:
    return validate_by_policy(policy_of(kind, MODES[kind] if more is None else more), data, version)


def validate_by_policy(policy: TopicPolicy, data: bytes, version: int = 9) -> ValidatedRequest:
    body = produce_body(version, [topic_data("t", (0, data))])
    config = load(read_yaml(FILE.replace("MORE", ""), "f"), {}).config
    budget = DecompressionBudget(1 << 24, 100, lambda: None)
    request = walk_produce_request(bytearray(body), version, 0, 100)
    return validate_request(request, {}, lambda _: policy, limits_of(config), lambda: NOW, Decompressor(), budget)


def read(data: bytes) -> list[tuple[int, Any, Any, Any]]:
    one = MemoryRecords(data).next_batch()
    assert one.validate_crc()
    return [(each.timestamp, each.key, each.value, each.headers) for each in one]


@pytest.mark.parametrize("kind", list(MODES))
@pytest.mark.parametrize("codec", list(CODECS))
def test_masking_replaces_sensitive_value_and_changes_nothing_else(codec: str, kind: str) -> None:
    framed = b"\0\0\0\0\x07"
    records = [
        Rec(NOW, b"k", SECRET, [(b"h", SECRET)]),
        Rec(NOW + 1, SECRET, None),
        Rec(NOW + 2, None, framed + SECRET),
        Rec(NOW + 3, b"k", b'{"other": "me@example.com"}'),
    ]
    data = batch(records, CODECS[codec], producer_id=7, producer_epoch=3, base_sequence=11)

    found = validate_batch(data, kind)

    made = found.replacements()[0, 0]
    assert not found.rejected
    assert found.masked[0, 0].count == 2
    values = [MASKED, None, framed + MASKED, b'{"other": "me@example.com"}']
    headers = [[("h", SECRET)], [], [], []]
    assert read(made) == [
        (rec.timestamp, rec.key, value, own) for rec, value, own in zip(records, values, headers, strict=True)
    ]
    assert made[:8] == data[:8] and made[12:17] == data[12:17] and made[21:61] == data[21:61]


@pytest.mark.parametrize("kind", list(MODES))
@pytest.mark.parametrize(
    ("data", "version", "code"),
    [
        (batch([Rec(NOW, b"k", SECRET[:-1])]), 9, 87),
        (batch([Rec(NOW, b"k", b'{"mail": 7}')]), 9, 87),
        (batch([Rec(NOW, b"k", SECRET), Rec(NOW, b"k", b"\0\0\0\0\x01\x02\x0a")]), 9, 87),
        (message(1, SECRET, timestamp=NOW), 2, 87),
        (batch([Rec(NOW, b"k", SECRET)], crc=1), 9, 2),
        (batch([Rec(NOW, b"k", SECRET)], CODECS["lz4"], tail=b"x"), 9, None),
        (batch([Rec(NOW, b"k", SECRET)], compressed=b"junk", attributes=4), 9, -1),
    ],
)
def test_a_batch_that_cannot_be_masked_is_rejected_in_every_mode(
    data: bytes, version: int, code: int | None, kind: str
) -> None:
    found = validate_batch(data, kind, version=version)

    if code is None:  # readable, followed by bytes that are dropped
        assert (0, 0) in found.rejected or read(found.replacements()[0, 0])[0][2] == MASKED
        return
    assert found.rejected[0, 0].code == code
    assert (0, 0) not in found.replacements()
    assert "example" not in str(found.rejected[0, 0])


@pytest.mark.parametrize("kind", ["observe", "not enforced", "suspended"])
def test_masks_value_of_record_with_observed_violations(kind: str) -> None:
    found = validate_batch(batch([Rec(5, b"k", SECRET)]), kind)

    assert found.observed[0, 0][0].bad_count == 1 and not found.rejected
    assert read(found.replacements()[0, 0])[0][2] == MASKED


@pytest.mark.parametrize("more", ["fix: {timestamp: now}", "mode: mark"])
def test_masks_fixed_and_marked_batches(more: str) -> None:
    found = validate_batch(batch([Rec(5, b"k", SECRET)]), more=more)

    assert not found.rejected
    ((timestamp, _, value, headers),) = read(found.replacements()[0, 0])
    assert value == MASKED
    assert (timestamp, headers) == ((NOW, []) if "fix" in more else (5, [("sluicegate.reason", b"timestamp_too_old")]))


@pytest.mark.parametrize("kind", ["reject", "observe", "suspended"])
def test_a_batch_that_is_too_large_after_masking_is_rejected(kind: str) -> None:
    data = batch([Rec(NOW, b"k", b'{"mail":""}')])
    size = len(validate_batch(data).replacements()[0, 0])

    assert validate_batch(data, kind, f"{MODES[kind]}\n    max.message.bytes: {size}").masked
    rejected = validate_batch(data, kind, f"{MODES[kind]}\n    max.message.bytes: {size - 1}").rejected[0, 0]
    assert rejected.code == 10


@pytest.mark.parametrize("kind", list(MODES))
@pytest.mark.parametrize(
    ("schema", "value", "outcome"),
    [
        (AVRO, b"\0\0\0\0\7\2\4me", b"\0\0\0\0\7\2\6***"),
        (AVRO, b"\0\0\0\0\7\0", None),
        (AVRO, b"\0\0\0\0\7\2\4m", 87),
        (AVRO, b'{"mail": "me"}', 87),
        (AVRO, b"\0\0\0\0\6\2\4me", 87),
        (None, b"\0\0\0\0\7\2\4me", 7),
        (RegisteredSchema(SchemaLanguage.AVRO, ELSEWHERE), b"\0\0\0\0\7\2\4me", 87),
    ],
)
def test_masks_or_rejects_values_with_a_registered_schema(
    schema: RegisteredSchema | None, value: bytes, outcome: bytes | int | None, kind: str
) -> None:
    file = FILE.replace("fields: [mail]", "fields: [mail], schema: {registry: main}")
    file += "registries: {main: {url: 'http://127.0.0.1:9'}}"
    policy = policy_of(kind, MODES[kind], SchemaRules({"main": OneSchema(schema)}), file)

    found = validate_by_policy(policy, batch([Rec(NOW, b"k", value)], CODECS["lz4"]))

    if isinstance(outcome, int):
        assert found.rejected[0, 0].code == outcome
        assert (0, 0) not in found.replacements()
    elif outcome is None:
        assert not found.rejected and not found.masked
        assert read(found.replacements()[0, 0])[0][2] == value
    else:
        assert not found.rejected
        assert read(found.replacements()[0, 0])[0][2] == outcome


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("tags: [PII]", "add schema"),
        ("fields: [a], schema: {registry: other}", "use registry other"),
        ("schema: {registry: main}", "at least one field or tag"),
    ],
)
def test_inconsistent_keys_of_sensitive_fields_are_errors(keys: str, words: str) -> None:
    file = FILE.replace("fields: [mail]", keys) + "registries: {main: {url: 'http://127.0.0.1:9'}}"

    with pytest.raises((RuleUnusable, ConfigError), match=words):
        policy_of("reject", "", SchemaRules({"main": OneSchema(AVRO)}), file)


@pytest.mark.parametrize("more", ["samples: true", "quarantine: dead", "checks: none"])
def test_rejects_settings_that_would_store_sensitive_values_in_clear(more: str) -> None:
    with pytest.raises(RuleUnusable, match="cannot be combined"):
        policy_of("reject", more)


def test_rejects_missing_or_too_short_hash_key_file(tmp_path: Any) -> None:
    file = tmp_path / "key"
    text = f"sensitive: [{{name: h, action: hash, fields: [mail], key_file: {file}}}]"
    whole = FILE.replace("sensitive: [{name: mail, action: mask, fields: [mail]}]\n    MORE", text)

    for content in (None, "short"):
        if content is not None:
            file.write_text(content)
        with pytest.raises(RuleUnusable, match="sensitive fields h"):
            rulebook_of(load(read_yaml(whole, "f"), {}).config)
    file.write_text("0123456789abcdef\n")
    assert rulebook_of(load(read_yaml(whole, "f"), {}).config).policy_of("t").sensitive is not None
    assert json.loads(MASKED)["mail"] == "***"
