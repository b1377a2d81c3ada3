"""The process that compiles and evaluates schemas and rules, one request at a time, with limited CPU time and memory.

If a request exceeds its CPU time, the system ends the process (SIGPROF). In this process, only the compiler of Protobuf
sources and operators' own rules open sockets or files.
"""

import resource
import signal
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from io import FileIO
from pathlib import Path
from typing import Any, Final

from sluicegate.proxy.rules_process.messages import (
    CHANGES,
    ENCRYPTED,
    FORMATS,
    JSON_ENCODING,
    NAMING,
    EvaluationRequest,
    EvaluationResponse,
    EvaluatorKind,
    ResponseOutcome,
    RulesOperation,
    Specification,
    Subject,
    received_request,
    record_of,
    send_response,
)
from sluicegate.proxy.rules_process.protoc import write_descriptor_set
from sluicegate.validation.rules.custom_rule import place_of
from sluicegate.validation.rules.protobuf.message_names import MessageNaming
from sluicegate.validation.rules.rule import Outage, RecordRule, RuleUnusable, SchemaError, Side, StepBudget
from sluicegate.validation.rules.schemas.conditions import SchemaCondition
from sluicegate.validation.rules.schemas.content import (
    Content,
    ExpressionOfSchema,
    Formats,
    HasConstraints,
    HasExpressions,
    HasJsonEncoding,
    ReadAsJson,
    with_formats,
)
from sluicegate.validation.rules.schemas.inline_rules import compiled_inline_rules, unusable_rules_of

_RULES = "sluicegate.validation.rules."
_MODULES: Final = {
    EvaluatorKind.JSON: ("json.schema", "jsonschema_rs", "orjson"),
    EvaluatorKind.AVRO: ("avro.schema",),
    EvaluatorKind.SERIALIZED_AVRO: ("avro.schema",),
    EvaluatorKind.PROTOBUF: (
        "protobuf.indexed_schema",
        "google.protobuf.descriptor_pb2",
        "google.protobuf.descriptor_pool",
        "google.protobuf.message",
        "google.protobuf.message_factory",
    ),
    EvaluatorKind.PROTO_SOURCE: ("protobuf.indexed_schema", "grpc_tools._protoc_compiler"),
    EvaluatorKind.CONTENT_RULE: ("content_rules",),
    EvaluatorKind.EXPRESSION: ("cel.rule",),
    EvaluatorKind.JSON_EXPRESSION: ("json.schema", "jsonschema_rs", "orjson", "cel_expr_python.cel"),
    EvaluatorKind.AVRO_EXPRESSION: ("avro.schema", "cel_expr_python.cel"),
    EvaluatorKind.PROTOBUF_EXPRESSION: (
        "protobuf.indexed_schema",
        "google.protobuf.message_factory",
        "cel_expr_python.cel",
    ),
    EvaluatorKind.PROTOBUF_CONSTRAINTS: ("protobuf.indexed_schema", "google.protobuf.message_factory", "protovalidate"),
    EvaluatorKind.INLINE_RULES: ("json.schema", "jsonschema_rs", "orjson", "cel_expr_python.cel"),
    EvaluatorKind.AS_JSON: ("json.schema", "jsonschema_rs", "orjson"),
    EvaluatorKind.CUSTOM_RULE: ("custom_rule", "importlib.metadata"),
}
_WARM: Final = {
    EvaluatorKind.JSON: Specification(
        EvaluatorKind.JSON, b'{"type": "object", "properties": {"a": {"type": "string", "pattern": "b"}}}'
    ),
    EvaluatorKind.AVRO: Specification(
        EvaluatorKind.AVRO, b'{"type": "record", "name": "A", "fields": [{"name": "a", "type": "long"}]}'
    ),
    EvaluatorKind.EXPRESSION: Specification(EvaluatorKind.EXPRESSION, b"value.a > 0"),
    EvaluatorKind.AVRO_EXPRESSION: Specification(
        EvaluatorKind.AVRO_EXPRESSION,
        b'{"type": "record", "name": "A", "fields": [{"name": "a", "type": "long"}]}',
        options={"expression": "value.a > 0", "schema": EvaluatorKind.AVRO},
    ),
}
_OVER_SCHEMAS: Final = frozenset(
    {
        EvaluatorKind.JSON_EXPRESSION,
        EvaluatorKind.AVRO_EXPRESSION,
        EvaluatorKind.PROTOBUF_EXPRESSION,
        EvaluatorKind.PROTOBUF_CONSTRAINTS,
        EvaluatorKind.INLINE_RULES,
        EvaluatorKind.AS_JSON,
    }
)


def load_libraries(kinds: frozenset[EvaluatorKind]) -> None:
    """Import and exercise the libraries for these kinds, so that later measurements do not include the import time."""
    for kind in kinds:
        ours, *libraries = _MODULES[kind]
        import_module(_RULES + ours)
        try:
            for name in libraries:
                import_module(name)
            if kind in _WARM:
                compile_specification(_WARM[kind])
        except (ImportError, RuleUnusable):
            continue  # compiling such a rule reports what is missing


def compile_specification(given: Specification) -> Content | RecordRule | ExpressionOfSchema | None:
    """Return the schema or rule, or None if there is no object to keep. Raises RuleUnusable, and
    libraries' own errors.
    """
    if given.kind not in _OVER_SCHEMAS:
        return _schema_or_rule(given)
    content = _schema_or_rule(replace(given, kind=given.options["schema"]))
    assert isinstance(content, Content)
    if given.kind is EvaluatorKind.PROTOBUF_CONSTRAINTS:
        assert isinstance(content, HasConstraints)
        return content.constraints()
    if given.kind is EvaluatorKind.INLINE_RULES:
        return compiled_inline_rules(content, given.options[CHANGES], time.time_ns)
    if given.kind is EvaluatorKind.AS_JSON:
        assert isinstance(content, ReadAsJson)
        return content.follows_as_json(given.options["json_schema"])
    assert isinstance(content, HasExpressions)
    expression = given.options["expression"]
    if isinstance(expression, SchemaCondition):
        return content.condition(expression, time.time_ns)
    return content.expression(expression)


def _schema_or_rule(given: Specification) -> Content | RecordRule | None:
    named = {name: text.decode() for name, text in given.references}
    if given.kind is EvaluatorKind.PROTO_SOURCE:
        write_descriptor_set(given.name, given.text.decode(), named)
        return None
    if given.kind is EvaluatorKind.JSON:
        from sluicegate.validation.rules.json.schema import json_schema_content  # noqa: PLC0415

        content = json_schema_content(given.text.decode(), named, given.options.get(ENCRYPTED, ()))
        return with_formats(content, given.options.get(FORMATS, Formats.ASSERT), StepBudget())
    if given.kind in (EvaluatorKind.AVRO, EvaluatorKind.SERIALIZED_AVRO):
        from sluicegate.validation.rules.avro import schema as avro_schema  # noqa: PLC0415

        compile_avro = (
            avro_schema.avro_content if given.kind is EvaluatorKind.AVRO else avro_schema.serialized_avro_content
        )
        references = [text.decode() for _, text in given.references]
        avro = compile_avro(given.text.decode(), references, given.options.get(ENCRYPTED, ()))
        return avro.json_encoded() if JSON_ENCODING in given.options and isinstance(avro, HasJsonEncoding) else avro
    if given.kind is EvaluatorKind.PROTOBUF:
        from sluicegate.validation.rules.protobuf import indexed_schema, schema  # noqa: PLC0415

        if given.name:
            return schema.protobuf_content(given.text, given.name)
        naming = given.options.get(NAMING, MessageNaming.CONFLUENT)
        return indexed_schema.indexed_protobuf_content(given.text, naming, given.options.get(ENCRYPTED, ()))
    if given.kind is EvaluatorKind.CONTENT_RULE:
        from sluicegate.validation.rules.content_rules import content_rule  # noqa: PLC0415

        return content_rule(given.name, Side(given.options["side"]), given.options["keys"])
    if given.kind is EvaluatorKind.EXPRESSION:
        from sluicegate.validation.rules.cel.rule import IsTrue  # noqa: PLC0415

        return IsTrue(given.text.decode())
    from sluicegate.validation.rules.custom_rule import custom_rule  # noqa: PLC0415

    return custom_rule(given.name, given.options)


def _applied(one: Any, operation: RulesOperation, subject: Subject) -> str | None:
    """Return the result of applying a schema to data, or a rule to a record."""
    apply: Callable[..., str | None] = getattr(one, operation.value)
    if not isinstance(subject, bytes):
        return apply(record_of(subject))
    return apply(subject) if operation is RulesOperation.RECORD_NAME else apply(subject, StepBudget())


_STATM = Path("/proc/self/statm")
_PAGE_BYTES = resource.getpagesize()


def own_bytes() -> int:
    """Return the number of resident bytes that no file backs, or 0 if the system does not report it."""
    _, resident, of_files = _pages()
    return (resident - of_files) * _PAGE_BYTES


def limit_growth(size: int) -> None:
    """Permanently limit this process to `size` more mapped bytes. Do nothing if the system does not report its size."""
    mapped = _pages()[0] * _PAGE_BYTES
    if mapped:
        with suppress(ValueError, OSError):  # a lower limit is already set
            resource.setrlimit(resource.RLIMIT_AS, (mapped + size, mapped + size))


def _pages() -> tuple[int, int, int]:
    try:
        mapped, resident, of_files = map(int, _STATM.read_bytes().split(maxsplit=3)[:3])
    except OSError:
        return 0, 0, 0
    return mapped, resident, of_files


OUT_OF_MEMORY, WORN_OUT, NO_ROOM_TO_READ = 77, 78, 79
"""The evaluator's exit codes.

OUT_OF_MEMORY: a request exceeded the memory limit. WORN_OUT: earlier requests left too much memory in use.
NO_ROOM_TO_READ: a request was larger than the memory limit, and its remaining bytes are still in the pipe.
"""

# Shares of the memory limit: for all compiled schemas together, and for the growth between requests.
_MOST_COMPILED, _MOST_GROWN = 1 / 4, 1 / 2
# A compiled schema uses at least this many times the memory of its text.
_TIMES_TEXT = 8
_LEAST_BYTES = 4096
_LEAST_SECONDS = 1e-3
# After this CPU time, the remaining records of a request wait, so that another client gets its turn.
_TURN_SECONDS = 0.01


class Evaluator:
    """Responds to requests from the pipe `here` until the pipe is closed.

    `memory` is the number of bytes that this process may map beyond its current size.
    """

    def __init__(self, here: FileIO, there: FileIO, memory: int) -> None:
        self._here = here
        self._there = there
        self._memory = memory
        self._made: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        self._made_bytes = 0

    def run(self) -> int:
        """Handle requests, and return the exit code. Raises OSError if the reader has closed the response pipe."""
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        limit_growth(self._memory)
        at_first = own_bytes()
        while True:
            try:
                request = received_request(self._here)
            except MemoryError:
                return NO_ROOM_TO_READ
            if request is None:
                return 0
            try:
                self._respond(request)
            except MemoryError:
                return OUT_OF_MEMORY
            del request
            if own_bytes() - at_first > self._memory * _MOST_GROWN:
                return WORN_OUT

    def _respond(self, request: EvaluationRequest) -> None:
        """Send the response to a request.

        A request with several subjects gets a response for each subject as soon as it is evaluated.
        """
        signal.setitimer(signal.ITIMER_PROF, max(request.seconds, _LEAST_SECONDS))
        try:
            for response in self._responses(request):
                send_response(self._there, response)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _responses(self, request: EvaluationRequest) -> Iterator[EvaluationResponse]:
        """Yield the responses to a request.

        The last response is the one for the last subject, the first one that is not DONE, or the one that marks the end
        of the turn.
        """
        at_first = began = time.process_time()
        if request.operation is RulesOperation.COMPILE:
            outcome, words, grown = self._compiled(request)
            yield EvaluationResponse(outcome, words, time.process_time() - began, grown)
            return
        for left, subject in enumerate(request.subjects, 1 - len(request.subjects)):
            outcome, words = self._evaluated(request, subject)
            now = time.process_time()
            is_last = not left or outcome is not ResponseOutcome.DONE or now - at_first > _TURN_SECONDS
            yield EvaluationResponse(outcome, words, now - began, is_last=is_last)
            if is_last:
                return
            began = now

    def _compiled(self, request: EvaluationRequest) -> tuple[ResponseOutcome, str | None, int]:
        """Compile a specification.

        Return the outcome, its text, and the used memory in bytes, or 0 if it is unknown.
        """
        specification = request.specification
        assert specification is not None
        before = own_bytes()
        try:
            one = compile_specification(specification)
        except MemoryError:
            raise
        except RuleUnusable as error:
            return ResponseOutcome.UNUSABLE, str(error), 0
        except OSError as error:  # an error in the folder for temporary files
            return ResponseOutcome.FAILED, f"{type(error).__name__}: {error.strerror}", 0
        except BaseException as error:  # libraries may panic, which concerns only this schema
            return ResponseOutcome.UNUSABLE, f"compiling the schema failed ({type(error).__name__})", 0
        grown = max(own_bytes() - before, _TIMES_TEXT * specification.size, _LEAST_BYTES)
        if one is not None:
            self._keep(request.number, one, grown)
        return ResponseOutcome.DONE, unusable_rules_of(one) or None, grown

    def _evaluated(self, request: EvaluationRequest, subject: Subject) -> tuple[ResponseOutcome, str | None]:
        if request.number not in self._made:
            return ResponseOutcome.UNKNOWN, None
        self._made.move_to_end(request.number)
        one, _ = self._made[request.number]
        try:
            words = _applied(one, request.operation, subject)
        except MemoryError:
            raise
        except Outage as outage:
            if isinstance(outage.__cause__, MemoryError):
                raise MemoryError from outage
            return ResponseOutcome.OUTAGE, str(outage)
        except SchemaError as error:
            return ResponseOutcome.UNUSABLE, str(error)
        except BaseException as error:  # a library's panic is not an Exception
            return ResponseOutcome.FAILED, f"{type(error).__name__} at {place_of(error)}"
        return ResponseOutcome.DONE, None if words is None else str(words)

    def _keep(self, number: int, one: Any, size: int) -> None:
        _, before = self._made.pop(number, (None, 0))
        self._made_bytes -= before
        self._made[number] = (one, size)
        self._made_bytes += size
        while self._made_bytes > self._memory * _MOST_COMPILED and len(self._made) > 1:
            _, (_, freed) = self._made.popitem(last=False)
            self._made_bytes -= freed
