"""Compiles a registry's schemas for rules, either inline, or first in the rules process."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol

from sluicegate.config.disk.regular_file import read_file
from sluicegate.proxy.registry.confluent_api import SchemaText
from sluicegate.proxy.rules_process.evaluator import compile_specification
from sluicegate.proxy.rules_process.messages import ENCRYPTED, NAMING, EvaluationResponse, EvaluatorKind, Specification
from sluicegate.proxy.rules_process.protoc import DESCRIPTOR_SET, OWN_NAME, descriptor_set_of
from sluicegate.proxy.rules_process.rule_limits import TooCostly
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.proxy.rules_process.stoppable import StoppableContent
from sluicegate.validation.rules.rule import Outage
from sluicegate.validation.rules.schemas.content import Content, SchemaLanguage, SchemaUnusable

# A schema that took at most this much CPU time in the rules process is also compiled in the proxy and applied inline.
_CHEAP_SECONDS = 0.01
_CHEAP_BYTES = 1 << 20
_MOST_DESCRIPTOR_BYTES = 16 << 20
# A compiled schema uses at least this many times the memory of its text.
_TIMES_TEXT = 8

REGISTRY_KINDS: Final = frozenset(
    {EvaluatorKind.JSON, EvaluatorKind.SERIALIZED_AVRO, EvaluatorKind.PROTOBUF, EvaluatorKind.PROTO_SOURCE}
)
_KINDS: Final = {
    SchemaLanguage.JSON: EvaluatorKind.JSON,
    SchemaLanguage.AVRO: EvaluatorKind.SERIALIZED_AVRO,
    SchemaLanguage.PROTOBUF: EvaluatorKind.PROTOBUF,
}


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A schema that rules can apply. `size` is the number of bytes that it uses in this process."""

    content: Content
    size: int


class SchemaCompiler(Protocol):
    """Compiles a registry's schemas."""

    def __call__(self, text: SchemaText) -> CompiledSchema:
        """Compile a schema. Raises SchemaUnusable, Outage and WaitNotAllowed."""


def compile_inline(text: SchemaText) -> CompiledSchema:
    """Compile a schema in this thread, without a limit. Raises SchemaUnusable."""
    if text.language is SchemaLanguage.PROTOBUF:
        imports = {each.name: each.text for each in text.references}
        specification = _of_descriptor_set(descriptor_set_of(OWN_NAME, text.text, imports), text)
    else:
        specification = _specification(_KINDS[text.language], text)
    return CompiledSchema(_content(specification), _TIMES_TEXT * specification.size)


class RulesProcessCompiler:
    """Compiles schemas in the rules process, and also in this process if that was cheap."""

    def __init__(self, process: RulesProcess) -> None:
        self._process = process

    def __call__(self, text: SchemaText) -> CompiledSchema:
        """Compile a schema. Raises SchemaUnusable, Outage and WaitNotAllowed."""
        try:
            specification = self._specification_of(text)
            took = self._process.compile(specification)
        except TooCostly as error:
            raise SchemaUnusable(f"compiling the schema takes {error}") from error
        content = _content(specification) if _is_cheap(took) else None
        taken = specification.size if content is None else max(took.grown, _TIMES_TEXT * specification.size)
        return CompiledSchema(StoppableContent(specification, content, self._process), taken)

    def _specification_of(self, text: SchemaText) -> Specification:
        if text.language is not SchemaLanguage.PROTOBUF:
            return _specification(_KINDS[text.language], text)
        try:
            with TemporaryDirectory(prefix="sluicegate-proto-") as folder:
                self._process.compile(_specification(EvaluatorKind.PROTO_SOURCE, text, folder))
                descriptor_set = read_file(Path(folder) / DESCRIPTOR_SET, _MOST_DESCRIPTOR_BYTES)
        except OSError as error:
            raise Outage(
                f"Protobuf is compiled in the folder for temporary files (TMPDIR), which cannot be used: "
                f"{error.strerror}"
            ) from error
        if len(descriptor_set) > _MOST_DESCRIPTOR_BYTES:
            raise SchemaUnusable(f"the compiled schema has more than {_MOST_DESCRIPTOR_BYTES} bytes")
        return _of_descriptor_set(descriptor_set, text)


def _of_descriptor_set(descriptor_set: bytes, text: SchemaText) -> Specification:
    return Specification(EvaluatorKind.PROTOBUF, descriptor_set, options={NAMING: text.naming, **_options(text)})


def _specification(kind: EvaluatorKind, text: SchemaText, name: str = "") -> Specification:
    references = tuple((each.name, each.text.encode(errors="surrogatepass")) for each in text.references)
    return Specification(kind, text.text.encode(errors="surrogatepass"), references, name, _options(text))


def _options(text: SchemaText) -> dict[str, Any]:
    return {ENCRYPTED: text.rules.encrypted} if text.rules.encrypted else {}


def _is_cheap(took: EvaluationResponse) -> bool:
    return took.seconds <= _CHEAP_SECONDS and took.grown <= _CHEAP_BYTES


def _content(specification: Specification) -> Content:
    """Compile a schema in this process. Raises SchemaUnusable for any error of a library."""
    try:
        content = compile_specification(specification)
    except SchemaUnusable:
        raise
    except Exception as error:  # a library's error concerns only this schema
        raise SchemaUnusable(f"compiling the schema failed ({type(error).__name__})") from error
    assert isinstance(content, Content)
    return content
