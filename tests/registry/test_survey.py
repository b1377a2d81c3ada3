"""Unusable schemas in a real registry are reported by a command and as a condition, before a record needs them."""

import json
import re
import socket
import subprocess
from base64 import b64encode
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from sluicegate.config.loading import config_of
from sluicegate.proxy.doctor.check_result import Level
from sluicegate.proxy.doctor.registries import check
from sluicegate.proxy.registry.met_subjects import met_subjects
from sluicegate.proxy.registry.survey import SurveyResult, Surveys, UnusableSchema
from sluicegate.proxy.server.schema_watch import SchemaWatch
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from tests.broker.proxy_process import COMMAND
from tests.registry.apicurio import Apicurio
from tests.registry.stand_in import StandIn, http_response

_NEEDS_MISSING = FileDescriptorProto(name="main.proto", syntax="proto3", dependency=["missing.proto"])
PROTO3 = 'syntax = "proto3"; '
UNUSABLE = {
    "undefined": ("PROTOBUF", PROTO3 + "message M { Missing a = 1; }", '"Missing" is not defined'),
    "import": ("PROTOBUF", PROTO3 + 'import "missing.proto"; message M { }', "missing.proto: File not found"),
    "encoded": ("PROTOBUF", b64encode(_NEEDS_MISSING.SerializeToString()).decode(), "missing.proto"),
    "number": ("PROTOBUF", PROTO3 + "message M { int32 a = 1; int32 b = 1; }", "has already been used"),
    "zero": ("PROTOBUF", PROTO3 + "message M { int32 a = 0; }", "must be positive integers"),
    "enum": ("PROTOBUF", PROTO3 + "enum E { ONE = 1; } message M { E a = 1; }", "must be zero"),
    "twice": ("PROTOBUF", PROTO3 + "message M { int32 a = 1; int32 a = 2; }", "already defined"),
    "reserved": ("PROTOBUF", PROTO3 + "message M { reserved 1; int32 a = 1; }", "reserved number"),
    "option": ("PROTOBUF", PROTO3 + "message M { int32 a = 1 [(missing) = 1]; }", "missing"),
    "keys": ("PROTOBUF", PROTO3 + "message M { map<float, int32> a = 1; }", "Key in map fields"),
    "alias": ("PROTOBUF", PROTO3 + "enum E { A = 0; B = 0; } message M { E a = 1; }", "same enum value"),
    "large": ("PROTOBUF", PROTO3 + "message M { int32 a = 536870912; }", "cannot be greater than"),
    "own-range": ("PROTOBUF", PROTO3 + "message M { int32 a = 19000; }", "reserved for the protocol buffer"),
    "packed": ("PROTOBUF", PROTO3 + "message M { repeated string a = 1 [packed = true]; }", "packed"),
    "jstype": ("PROTOBUF", PROTO3 + "message M { int32 a = 1 [jstype = JS_STRING]; }", "jstype"),
    "default": ("PROTOBUF", PROTO3 + "message M { int32 a = 1 [default = 7]; }", "efault values are not allowed"),
    "range": ("PROTOBUF", PROTO3 + "message M { extensions 100 to 200; }", "xtension ranges are not allowed"),
    "extended": (
        "PROTOBUF",
        'syntax = "proto2"; message M { } extend M { optional int32 a = 1; }',
        "does not declare 1",
    ),
    "names": ("PROTOBUF", PROTO3 + "message M { int32 a_b = 1; int32 aB = 2; }", "JSON name"),
    "json-properties": ("JSON", json.dumps({"properties": []}), "the JSON Schema cannot be used"),
}
SUBJECTS = 200


def configuration_with_registry(url: str, **schemas: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration. `schemas`: keys of the value's schema by topic pattern."""
    rules = {
        match: [{"name": "body", "value": {"schema": {"registry": "main", **keys}}}] for match, keys in schemas.items()
    }
    return {
        "upstream": {"bootstrap": ["127.0.0.1:9"]},
        "listen": {"bootstrap": "127.0.0.1:19092"},
        "registries": {"main": {"url": url}},
        "topics": [{"match": match, "rules": entries} for match, entries in rules.items()],
    }


@pytest.mark.long
def test_check_lists_all_unusable_schemas_of_two_hundred(apicurio: Apicurio, tmp_path: Path) -> None:
    for name, (language, text, _) in UNUSABLE.items():
        apicurio.register(f"surveyed.{name}-value", text, language)
    for i in range(SUBJECTS - len(UNUSABLE)):
        apicurio.register(f"surveyed.{i}-value", json.dumps({"type": "record", "name": f"R{i}", "fields": []}))
    apicurio.register("payments-value", UNUSABLE["undefined"][1], "PROTOBUF")  # no rule can use the schema
    file = tmp_path / "sluicegate.yaml"
    given = configuration_with_registry(apicurio.url, **{"surveyed.*": {}})
    file.write_text(json.dumps(given))

    done = subprocess.run(
        [COMMAND, "check", "--registry", file], capture_output=True, text=True, timeout=300, check=False
    )

    listed = {line for line in done.stderr.splitlines() if line.startswith("registry main: subject ")}
    assert done.returncode == 1
    assert done.stdout == "registry main: the newest schemas of 180 subjects can be used\n"
    assert len(UNUSABLE) == len(listed) == 20
    for name, (_, _, words) in UNUSABLE.items():
        assert [line for line in listed if f"subject surveyed.{name}-value, version 1 " in line and words in line]

    config, status = config_of(given), Status()
    found = list(check(config))
    assert [each.level for each in found] == [Level.WARNING] * 20 + [Level.OK]
    watch, surveys = SchemaWatch(config, status), Surveys(config)
    watch.learn(surveys.survey_all())
    assert len(subjects_with_condition(status)) == 20
    assert "main: surveyed.undefined-value" in subjects_with_condition(status)

    apicurio.register("surveyed.undefined-value", PROTO3 + "message M { int32 a = 1; }", "PROTOBUF")
    watch.learn(surveys.survey_all())

    assert len(subjects_with_condition(status)) == 19
    assert "main: surveyed.undefined-value" not in subjects_with_condition(status)


def subjects_with_condition(status: Status) -> set[str]:
    return {each.subject for each in status.active() if each.condition is Condition.SCHEMA_UNUSABLE}


@pytest.mark.parametrize(
    ("topic", "keys", "met", "others"),
    [
        ("orders.*", {}, ["orders.eu-value"], ["orders.eu-key", "payments-value", "orders.eu"]),
        ("a-b", {"subject": "topic-record"}, ["a-b-com.example.Order"], ["a-b", "a-com.example.Order"]),
        ("orders", {"subject": "record"}, ["com.example.Order"], []),
        ("orders", {"subject": "any"}, ["anything", "-", ""], []),
    ],
)
def test_survey_applies_rules_to_subjects_of_their_naming_strategy(
    topic: str, keys: dict[str, str], met: list[str], others: list[str]
) -> None:
    matches = met_subjects(config_of(configuration_with_registry("http://127.0.0.1:9", **{topic: keys})))[
        "main"
    ].matcher()

    assert all(map(matches, met))
    assert not any(map(matches, others))


def test_survey_applies_sensitive_fields_to_value_subjects_of_their_topics() -> None:
    given = configuration_with_registry("http://127.0.0.1:9")
    fields = {"name": "pii", "action": "mask", "tags": ["PII"], "schema": {"registry": "main"}}
    given["topics"] = [{"match": "people.*", "sensitive": [fields]}]

    matches = met_subjects(config_of(given))["main"].matcher()

    assert matches("people.eu-value")
    assert not any(map(matches, ["people.eu-key", "orders-value"]))


def test_subject_without_new_survey_result_keeps_its_condition() -> None:
    status = Status()
    watch = SchemaWatch(config_of(configuration_with_registry("http://127.0.0.1:9")), status)
    watch.learn([SurveyResult("main", 1, (UnusableSchema("orders-value", 1, 7, "it is empty"),))])

    watch.learn([SurveyResult("main", 0, (), failure="registry main is unavailable: Connection refused")])

    assert subjects_with_condition(status) == {"main: orders-value"}
    watch.learn([SurveyResult("main", 2, ())])
    assert subjects_with_condition(status) == set()


def test_survey_compiles_constraints_only_for_rules_that_apply_them(apicurio: Apicurio) -> None:
    bad = '[(buf.validate.field).cel = {id: "total" expression: "this >"}]'
    text = f'{PROTO3} import "buf/validate/validate.proto"; message M {{ int32 a = 1 {bad}; }}'
    for subject in ("constrained.a-value", "plain.a-value"):
        apicurio.register(subject, text, "PROTOBUF")
    keys = {"format": "protobuf", "protovalidate": True}
    given = configuration_with_registry(apicurio.url, **{"constrained.*": keys, "plain.*": {}})

    (surveyed,) = Surveys(config_of(given)).survey_all()

    assert [(each.subject, "expression total" in each.reason) for each in surveyed.unusable] == [
        ("constrained.a-value", True)
    ]
    assert surveyed.usable == 1


META = 'import "confluent/meta.proto"; '


def schema_with_tag(language: str, field: str, tag: str) -> str:
    """Return a schema with a text and a number, of which one has a tag."""
    if language == "PROTOBUF":
        option = f'[(confluent.field_meta).tags = "{tag}"]'
        tags = {name: option if name == field else "" for name in ("mail", "age")}
        return f"{PROTO3} {META} message P {{ string mail = 1 {tags['mail']}; int32 age = 2 {tags['age']}; }}"
    tagged = {name: {"confluent:tags": [tag]} if name == field else {} for name in ("mail", "age")}
    if language == "AVRO":
        types = {"mail": ["null", "string"], "age": ["null", "int"]}
        fields = [{"name": name, "type": types[name], **tagged[name]} for name in types]
        return json.dumps({"type": "record", "name": "P", "fields": fields})
    kinds = {"mail": "string", "age": "integer"}
    return json.dumps({"type": "object", "properties": {name: {"type": kinds[name], **tagged[name]} for name in kinds}})


def configuration_with_sensitive_field(name: str, registry: str, **keys: object) -> dict[str, Any]:
    fields = {"name": "pii", "action": "mask", "tags": ["PII"], "schema": {"registry": "main"}, **keys}
    return configuration_with_registry(registry) | {"topics": [{"match": f"{name}.*", "sensitive": [fields]}]}


@pytest.mark.parametrize("language", ["AVRO", "JSON", "PROTOBUF"])
def test_survey_lists_tags_on_unmaskable_fields_and_unused_tags(
    language: str, apicurio: Apicurio, tmp_path: Path
) -> None:
    name = f"people-{language.lower()}"
    for subject, field, tag in (("good", "mail", "PII"), ("number", "age", "PII"), ("untagged", "mail", "OTHER")):
        apicurio.register(f"{name}.{subject}-value", schema_with_tag(language, field, tag), language)
    file = tmp_path / "sluicegate.yaml"
    file.write_text(json.dumps(configuration_with_sensitive_field(name, apicurio.url, tags=["PII", "PIN"])))
    surveys = Surveys(config_of(json.loads(file.read_text())))

    (surveyed,) = surveys.survey_all()

    assert (surveyed.usable, surveyed.missing_tags) == (2, ())
    assert [each.subject for each in surveyed.unusable] == [f"{name}.number-value"]
    assert "only strings can be masked" in surveyed.unusable[0].reason

    apicurio.register(f"{name}.number-value", schema_with_tag(language, "mail", "PII"), language)
    (surveyed,) = surveys.survey_all()
    missing = "no field of the newest schemas of 3 subjects has the tag PIN of the sensitive fields pii"
    assert (surveyed.usable, surveyed.unusable, surveyed.missing_tags) == (3, (), (missing,))

    command = [COMMAND, "check", "--registry", file]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert f"registry main: {missing}" in done.stderr.splitlines()


def test_survey_accepts_rejecting_tag_on_a_field_of_any_type(apicurio: Apicurio) -> None:
    apicurio.register("rejected.a-value", schema_with_tag("AVRO", "age", "PII"), "AVRO")

    (surveyed,) = Surveys(
        config_of(configuration_with_sensitive_field("rejected", apicurio.url, action="reject"))
    ).survey_all()

    assert (surveyed.usable, surveyed.unusable, surveyed.missing_tags) == (1, (), ())


CONDITIONS = {
    "good": ("CEL", "message.a > 1"),
    "syntax": ("CEL", "message.a >"),
    "guard": ("CEL", "has(message.a ; message.a > 1"),
    "unknown": ("CEL", "massage.a > 1"),
    "fields": ("CEL_FIELD", "typeName == 'INT' ; value >"),
    "language": ("JSONATA", "a > 1"),
}
CONDITIONED = {
    "AVRO": json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}),
    "JSON": json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}}),
    "PROTOBUF": PROTO3 + "message M { int32 a = 1; }",
}


def _many_fields() -> dict[str, str]:
    """Return schemas that are too costly to compile in the proxy."""
    names = [f"n{i}" for i in range(3_000)]
    return {
        "AVRO": json.dumps(
            {"type": "record", "name": "R", "fields": [{"name": n, "type": "int"} for n in ["a", *names]]}
        ),
        "JSON": json.dumps({"type": "object", "properties": {n: {"type": "integer"} for n in ["a", *names]}}),
        "PROTOBUF": PROTO3
        + "message M { "
        + "".join(f"int32 {n} = {i}; " for i, n in enumerate(["a", *names], 1))
        + "}",
    }


RULE = [{"name": "adult", "expr": "this >= 18"}]
RULED = {
    "AVRO": json.dumps(
        {"type": "record", "name": "P", "fields": [{"name": "a", "type": "int", "confluent:rules": RULE}]}
    ),
    "JSON": json.dumps({"properties": {"a": {"confluent:rules": RULE}}}),
    "PROTOBUF": f"{PROTO3} {META} message P {{ int32 a = 1 [(confluent.field_meta).rules = "
    '{name: "adult" expr: "this >= 18"}]; }',
}


@pytest.mark.parametrize("language", RULED)
@pytest.mark.parametrize("subject", ["topic", "any"])
def test_survey_reports_schema_rules_that_are_not_enforced(language: str, subject: str) -> None:
    changes: dict[str, Any] = {"name": "r", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "CEL_FIELD"}
    bad = RULED[language].replace("this >= 18", "this >=")
    newest: dict[str, Any] = {"schema": RULED[language]}

    def respond(client: socket.socket, head: bytes) -> bool:
        found: Any = ["a-value"]
        if head.split(b" ", 2)[1].partition(b"?")[0] != b"/subjects":
            found = {"version": 1, "id": 7, "schemaType": language, **newest}
        client.sendall(http_response("200 OK", json.dumps(found).encode()))
        return True

    def survey_all(**keys: Any) -> SurveyResult:
        (found,) = Surveys(
            config_of(configuration_with_registry(registry.url, a={"subject": subject, **keys}))
        ).survey_all()
        return found

    with StandIn(respond) as registry:
        off, on = survey_all(), survey_all(inline_rules=True)
        newest["schema"] = bad
        off_bad, on_bad = survey_all(), survey_all(inline_rules=True)
        newest |= {"schema": RULED[language], "ruleSet": {"domainRules": [changes]}}
        changed = survey_all(inline_rules=True)
        changes["tags"] = ["PII"]  # the field lacks this tag
        others_changed = survey_all(inline_rules=True)
        changes["type"] = "JSONATA"
        rewritten = survey_all(inline_rules=True)

    not_enforced = "subject a-value: the rules inside it (adult) are not enforced"
    assert off.passed_over == off_bad.passed_over == (f"{not_enforced}: no rule for it sets inline_rules: true",)
    assert (on.passed_over, on.usable, off_bad.usable) == ((), 1, 1)
    assert "contains rules that cannot be evaluated: adult cannot be compiled: line 1" in str(on_bad.unusable[0])
    may_read = "they may read fields that its rules (r) change before values are written"
    assert changed.passed_over == (f"{not_enforced}: {may_read}",)
    assert others_changed.passed_over == ()
    whole = "its rule r changes whole values before they are written"
    assert rewritten.passed_over == (f"{not_enforced}: {whole}",)


_BAD_RULES = [{"name": "mail", "expr": "this.isEmail()"}, {"name": "rows", "sql": "a > 1"}, *RULE]


def _with_bad_rules(language: str, schemas: dict[str, str]) -> str:
    """Return a schema with a rule that can be evaluated and two that cannot."""
    if language == "PROTOBUF":
        rules = [json.dumps(each) for each in _BAD_RULES]
        texts = (re.sub(r'"(name|expr|sql)": ', r"\1: ", each) for each in rules)
        ruled = "int32 a = 1 [" + ", ".join(f"(confluent.field_meta).rules = {each}" for each in texts) + "]"
        return schemas[language].replace(PROTO3, PROTO3 + META).replace("int32 a = 1", ruled)
    schema = json.loads(schemas[language])
    place = schema["fields"][0] if language == "AVRO" else schema["properties"]["a"]
    place["confluent:rules"] = _BAD_RULES
    return json.dumps(schema)


@pytest.mark.parametrize("language", CONDITIONED)
@pytest.mark.parametrize("schemas", [CONDITIONED, _many_fields()], ids=["few fields", "many fields"])
def test_check_doctor_and_status_report_schema_rules_that_cannot_be_evaluated(
    language: str, schemas: dict[str, str], tmp_path: Path
) -> None:
    text = _with_bad_rules(language, schemas)

    def respond(client: socket.socket, head: bytes) -> bool:
        found: Any = ["a-value"]
        if head.split(b" ", 2)[1].partition(b"?")[0] != b"/subjects":
            found = {"version": 1, "id": 7, "schemaType": language, "schema": text}
        client.sendall(http_response("200 OK", json.dumps(found).encode()))
        return True

    with StandIn(respond) as registry:
        given = configuration_with_registry(registry.url, a={"inline_rules": True})
        file = tmp_path / "sluicegate.yaml"
        file.write_text(json.dumps(given))
        command = [COMMAND, "check", "--registry", file]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        found = list(check(config_of(given)))
        status = Status()
        SchemaWatch(config_of(given), status).learn(Surveys(config_of(given)).survey_all())

    named = "subject a-value, version 1 (schema 7) contains rules that cannot be evaluated: mail cannot be compiled"
    assert done.returncode == 1
    assert f"registry main: {named}" in done.stderr
    assert "; also rows\n" in done.stderr
    assert [each.level for each in found] == [Level.WARNING, Level.OK]
    assert subjects_with_condition(status) == {"main: a-value"}
    assert any(named in each.detail for each in status.active())


@pytest.mark.parametrize("language", CONDITIONED)
@pytest.mark.parametrize("schemas", [CONDITIONED, _many_fields()], ids=["few fields", "many fields"])
def test_survey_lists_uncompilable_conditions_only_for_rules_that_apply_them(
    language: str, schemas: dict[str, str]
) -> None:
    """No registry here keeps conditions, so a stand-in returns them."""

    def respond(client: socket.socket, head: bytes) -> bool:
        path = head.split(b" ", 2)[1].decode().partition("?")[0]
        found: Any = [f"{topic}.{name}-value" for topic in ("checked", "plain") for name in CONDITIONS]
        if path != "/subjects":
            name = path.split("/")[2].partition(".")[2].removesuffix("-value")
            rule = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "onFailure": "ERROR"}
            kind, expression = CONDITIONS[name]
            rules = {"domainRules": [rule | {"type": kind, "expr": expression}]}
            found = {"version": 1, "id": 7, "schemaType": language, "schema": schemas[language], "ruleSet": rules}
        client.sendall(http_response("200 OK", json.dumps(found).encode()))
        return True

    with StandIn(respond) as registry:
        (surveyed,) = Surveys(
            config_of(configuration_with_registry(registry.url, **{"checked.*": {"conditions": True}, "plain.*": {}}))
        ).survey_all()

    assert {each.subject for each in surveyed.unusable} == {
        f"checked.{name}-value" for name in CONDITIONS if name != "good"
    }
    assert all(each.reason.startswith("its condition r ") for each in surveyed.unusable)
    assert surveyed.usable == len(CONDITIONS) + 1


def test_survey_reports_record_changing_rules_and_recompiles_changed_schemas() -> None:
    encrypts = {"name": "r", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "ENCRYPT_PAYLOAD"}
    schema = {"schema": '"long"'}

    def respond(client: socket.socket, head: bytes) -> bool:
        found: Any = ["a-value"]
        if head.split(b" ", 2)[1].partition(b"?")[0] != b"/subjects":
            found = {"version": 1, "id": 7, **schema, "ruleSet": {"encodingRules": [encrypts]}}
        client.sendall(http_response("200 OK", json.dumps(found).encode()))
        return True

    with StandIn(respond) as registry:
        surveys = Surveys(config_of(configuration_with_registry(registry.url, a={})))
        (before,) = surveys.survey_all()
        schema["schema"] = '"strange"'  # the same subject, version and id, in a registry that was rebuilt
        (after,) = surveys.survey_all()

    assert before.passed_over == (
        "subject a-value: values are not validated, because its rule r changes the serialized bytes (encodingRules)",
    )
    assert (before.usable, len(after.unusable)) == (1, 1)


@pytest.mark.parametrize("schemas", [CONDITIONED, _many_fields()], ids=["few fields", "many fields"])
def test_survey_lists_expressions_that_do_not_fit_a_schema(apicurio: Apicurio, schemas: dict[str, str]) -> None:
    """JSON declares no types to an expression. With `subject: any` no topic has a schema of its own."""
    topics = {language: f"{language.lower()}{len(schemas[language])}" for language in ("AVRO", "PROTOBUF", "JSON")}
    for language, topic in topics.items():
        apicurio.register(f"{topic}-value", schemas[language], language)
    given = configuration_with_registry(apicurio.url)

    expressions = {"fits": "value.a > 1", "misspelt": "value.ab > 1"}
    for (rule, expression), strategy in product(expressions.items(), ["topic", "any"]):
        keys = {"name": rule, "cel": expression, "value": {"schema": {"registry": "main", "subject": strategy}}}
        given["topics"] = [{"match": topic, "rules": [keys]} for topic in topics.values()]
        (surveyed,) = Surveys(config_of(given)).survey_all()

        subjects = {f"{topic}-value" for topic in topics.values()}
        found = {each.subject: each.reason for each in surveyed.unusable if each.subject in subjects}
        unfit = ["AVRO", "PROTOBUF"] if rule == "misspelt" and strategy == "topic" else []
        assert set(found) == {f"{topics[each]}-value" for each in unfit}
        for reason in found.values():
            assert reason.startswith("the rule misspelt does not fit the schema: ")
            assert "undefined field 'ab'" in reason
