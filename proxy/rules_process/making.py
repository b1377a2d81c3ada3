"""Makes a schema or a rule from its specification, in the rules process."""

from importlib import import_module
from typing import Final

from sluicegate.proxy.rules_process.messages import Kind, Specification
from sluicegate.proxy.rules_process.protoc import write_descriptor_set
from sluicegate.validation.rules.rule import Rule, RuleUnusable, Side
from sluicegate.validation.rules.schemas.content import Content

_RULES = "sluicegate.validation.rules."
_MODULES: Final = {
    Kind.JSON: ("json.schema", "jsonschema_rs", "orjson"),
    Kind.AVRO: ("avro.schema", "fastavro.schema"),
    Kind.PROTOBUF: (
        "protobuf.schema",
        "google.protobuf.descriptor_pb2",
        "google.protobuf.descriptor_pool",
        "google.protobuf.message",
        "google.protobuf.message_factory",
    ),
    Kind.PROTO_SOURCE: ("protobuf.schema", "grpc_tools._protoc_compiler"),
    Kind.CONTENT_RULE: ("content_rules",),
    Kind.EXPRESSION: ("cel.rule",),
    Kind.OWN_RULE: ("own_rule", "importlib.metadata"),
}
_WARM: Final = {
    Kind.JSON: Specification(Kind.JSON, b'{"type": "object", "properties": {"a": {"type": "string", "pattern": "b"}}}'),
    Kind.AVRO: Specification(Kind.AVRO, b'{"type": "record", "name": "A", "fields": [{"name": "a", "type": "long"}]}'),
    Kind.EXPRESSION: Specification(Kind.EXPRESSION, b"value.a > 0"),
}


def load(kinds: frozenset[Kind]) -> None:
    """Import and use the libraries of these kinds once, so that later measurements do not include them."""
    for kind in kinds:
        ours, *libraries = _MODULES[kind]
        import_module(_RULES + ours)
        try:
            for name in libraries:
                import_module(name)
            if kind in _WARM:
                made(_WARM[kind])
        except (ImportError, RuleUnusable):
            continue  # making such a rule reports what is missing


def made(given: Specification) -> Content | Rule | None:
    """Return the schema or rule; None if there is nothing to keep. Raises RuleUnusable and errors of libraries."""
    named = {name: text.decode() for name, text in given.references}
    if given.kind is Kind.PROTO_SOURCE:
        write_descriptor_set(given.name, given.text.decode(), named)
        return None
    if given.kind is Kind.JSON:
        from sluicegate.validation.rules.json.schema import json_schema_content  # noqa: PLC0415

        return json_schema_content(given.text.decode(), named)
    if given.kind is Kind.AVRO:
        from sluicegate.validation.rules.avro.schema import avro_content  # noqa: PLC0415

        return avro_content(given.text.decode(), [text.decode() for _, text in given.references])
    if given.kind is Kind.PROTOBUF:
        from sluicegate.validation.rules.protobuf import schema as protobuf_schema  # noqa: PLC0415

        if given.name:
            return protobuf_schema.protobuf_content(given.text, given.name)
        return protobuf_schema.indexed_protobuf_content(given.text)
    if given.kind is Kind.CONTENT_RULE:
        from sluicegate.validation.rules.content_rules import content_rule  # noqa: PLC0415

        return content_rule(given.name, Side(given.options["side"]), given.options["keys"])
    if given.kind is Kind.EXPRESSION:
        from sluicegate.validation.rules.cel.rule import IsTrue  # noqa: PLC0415

        return IsTrue(given.text.decode())
    from sluicegate.validation.rules.own_rule import own_rule  # noqa: PLC0415

    return own_rule(given.name, given.options)
