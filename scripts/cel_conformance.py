#!/usr/bin/env python3
"""Prints which of CEL's conformance tests the runtime of expressions passes, file by file (docs/development.md).

scripts/cel_conformance.py CEL_SPEC    # a checkout of github.com/google/cel-spec, or the Go module cel.dev/expr

The environment has no extensions, as that of rules. A test passes if it gives the expected value, or an error where an
error is expected. Ends with 1 if a test of the core fails for another reason than those in EXPLAINED.
"""

import json
import math
import sys
import tempfile
from datetime import UTC
from pathlib import Path

import grpc_tools
from cel_expr_python import cel
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from grpc_tools import protoc

PROTOS = ("test/simple", "proto2/test_all_types", "proto2/test_all_types_extensions", "proto3/test_all_types")
PRIMITIVES = (None, "BOOL", "INT", "UINT", "DOUBLE", "STRING", "BYTES")
WRAPPERS = (None, "Bool", "Int64", "UInt64", "Double", "String", "Bytes")
ERRORS = ("eval_error", "any_eval_errors")
TIMES = {"google.protobuf.Timestamp": cel.Type.TIMESTAMP, "google.protobuf.Duration": cel.Type.DURATION}
EXPLAINED = {
    ("fields", "qualified_identifier_resolution"): "names are checked; equal keys of two numeric types are an error",
    ("namespace", "namespace"): "names are checked",
    ("parse", "nest"): "an expression has at most 31 levels of brackets",
    ("timestamps", "timestamp_arithmetic"): "the ends of the range",
    ("timestamps", "timestamp_range"): "the ends of the range",
    ("type_deduction", "functions"): "it declares functions",
    ("type_deduction", "flexible_type_parameter_assignment"): "it uses optional values",
    ("type_deduction", "type_parameters"): "it declares functions",
    ("type_deduction", "legacy_nullable_types"): "it uses optional values",
    ("type_deduction", "type_parameters_in_type_type"): "it declares functions",
    ("type_deduction", "empty_range_nested_comprehensions"): "the type of a loop over an empty list",
    ("wrappers", "field_mask"): "a field mask does not become JSON",
}
EXTENSIONS = ("_ext", "macros2", "optionals")


class NotApplicable(Exception):
    """A test needs something that rules cannot have: a declared function, an unknown value."""


class Tests:
    """The tests of a checkout, with their message types."""

    def __init__(self, checkout: Path) -> None:
        self.folder = checkout / "tests" / "simple" / "testdata"
        self.pool = descriptor_pool.DescriptorPool()
        with tempfile.NamedTemporaryFile() as out:
            ours = str(Path(grpc_tools.__file__).parent / "_proto")
            files = [f"cel/expr/conformance/{name}.proto" for name in PROTOS]
            arguments = ["protoc", f"-I{checkout / 'proto'}", f"-I{ours}", "--include_imports"]
            if protoc.main([*arguments, f"--descriptor_set_out={out.name}", *files]):
                sys.exit("the checkout's proto files cannot be compiled")
            described = descriptor_pb2.FileDescriptorSet.FromString(Path(out.name).read_bytes())
        for file in described.file:
            self.pool.Add(file)
        message_factory.GetMessageClassesForFiles([file.name for file in described.file], self.pool)

    def message(self, name: str, data: bytes):
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name)).FromString(data)

    def read(self, file: Path):
        kind = self.pool.FindMessageTypeByName("cel.expr.conformance.test.SimpleTestFile")
        found = message_factory.GetMessageClass(kind)()
        text_format.Parse(file.read_text(), found, descriptor_pool=self.pool)
        return found

    def object_of(self, any_value):
        return self.message(any_value.type_url.rpartition("/")[2], any_value.value)

    def passes(self, test) -> bool:
        variables = {one.name: declared_type(one) for one in test.type_env}
        data = {}
        for name, bound in test.bindings.items():
            if bound.WhichOneof("kind") != "value":
                raise NotApplicable
            data[name] = self.python_value(bound.value)
            variables.setdefault(name, cel.Type.DYN)
        container = {"container": test.container} if test.container else {}
        env = cel.NewEnv(self.pool, variables=variables, **container)
        if test.check_only:
            env.compile(test.expr)
            return True
        expected = test.WhichOneof("result_matcher")
        try:
            result = env.compile(test.expr, disable_check=test.disable_check).eval(data=data)
            value, failed = result.value(), result.type().name().lower().startswith("error")
        except Exception:
            return expected in ERRORS
        if expected in ERRORS or failed:
            return failed and expected in ERRORS
        if expected is None:
            return value is True
        wanted = test.value if expected == "value" else test.typed_result.result
        kind = wanted.WhichOneof("kind")
        if kind == "object_value":
            return are_equal(self.object_of(wanted.object_value), value)
        if kind == "double_value" and math.isnan(wanted.double_value):
            return isinstance(value, float) and math.isnan(value)
        if kind == "enum_value":
            return value == wanted.enum_value.value
        compared = f"dyn({test.expr}) == dyn({literal(wanted)})"
        return env.compile(compared, disable_check=test.disable_check).eval(data=data).value() is True

    def python_value(self, given):
        kind = given.WhichOneof("kind")
        value = getattr(given, kind)
        if kind == "bytes_value":
            return bytearray(value)
        if kind == "list_value":
            return [self.python_value(item) for item in value.values]
        if kind == "map_value":
            return {self.python_value(entry.key): self.python_value(entry.value) for entry in value.entries}
        if kind == "object_value":
            return self.object_of(value)
        return None if kind == "null_value" else value


def declared_type(one):
    if not one.HasField("ident"):
        raise NotApplicable
    return type_of(one.ident.type)


def type_of(given):
    kind = given.WhichOneof("type_kind")
    if kind == "primitive":
        return getattr(cel.Type, PRIMITIVES[given.primitive])
    if kind == "well_known":
        return (None, cel.Type("google.protobuf.Any"), *TIMES.values())[given.well_known]
    if kind == "list_type":
        return cel.Type.List(type_of(given.list_type.elem_type))
    if kind == "map_type":
        return cel.Type.Map(type_of(given.map_type.key_type), type_of(given.map_type.value_type))
    if kind == "message_type":
        return TIMES.get(given.message_type) or cel.Type(given.message_type)
    if kind == "wrapper":
        return cel.Type(f"google.protobuf.{WRAPPERS[given.wrapper]}Value")
    return cel.Type.NULL if kind == "null" else cel.Type.DYN


def are_equal(wanted, value) -> bool:
    name = wanted.DESCRIPTOR.full_name
    if hasattr(value, "SerializeToString"):
        return wanted.SerializeToString(deterministic=True) == value.SerializeToString(deterministic=True)
    if name == "google.protobuf.Timestamp":
        return wanted.ToDatetime(tzinfo=UTC) == value
    if name == "google.protobuf.Duration":
        return wanted.ToTimedelta() == value
    return name.startswith("google.protobuf.") and getattr(wanted, "value", None) == value


def literal(given) -> str:
    kind = given.WhichOneof("kind")
    value = getattr(given, kind)
    if kind in ("list_value", "map_value"):
        if kind == "list_value":
            return f"[{', '.join(map(literal, value.values))}]"
        return "{" + ", ".join(f"{literal(entry.key)}: {literal(entry.value)}" for entry in value.entries) + "}"
    if kind == "string_value":
        return '"' + "".join(f"\\U{ord(letter):08x}" for letter in value) + '"'
    if kind == "bytes_value":
        return 'b"' + "".join(f"\\x{byte:02x}" for byte in value) + '"'
    if kind == "double_value":
        return f"double('{value!r}')"
    if kind == "uint64_value":
        return f"{value}u"
    return {"null_value": "null", "bool_value": json.dumps(value)}.get(kind, f"({value})")


def main(checkout: Path) -> None:
    tests = Tests(checkout)
    counts = {}
    failed = []
    others = 0
    for file in sorted(tests.folder.glob("*.textproto")):
        passed = total = 0
        for section in tests.read(file).section:
            for test in section.test:
                total += 1
                try:
                    has_passed = tests.passes(test)
                except Exception:  # errors of the runtime, and NotApplicable
                    has_passed = False
                passed += has_passed
                if not has_passed and not file.stem.endswith(EXTENSIONS):
                    reason = EXPLAINED.get((file.stem, section.name))
                    failed.append(f"{file.stem}: {section.name}: {test.name}: {reason or 'not explained'}")
                    others += reason is None
        counts[file.stem] = passed, total
    print("| tests | passed | of |\n|---|---|---|")
    for name, (passed, total) in counts.items():
        print(f"| `{name}` | {passed} | {total} |")
    core = [count for name, count in counts.items() if not name.endswith(EXTENSIONS)]
    print(f"| all without extensions | {sum(each[0] for each in core)} | {sum(each[1] for each in core)} |")
    print(*failed, sep="\n")
    if others or not core:
        sys.exit(f"{others} differences are not explained")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
