#!/usr/bin/env python3
"""Packs the cases of protovalidate's conformance suite for tests/validation/rules/protobuf/test_conformance.py.

scripts/protovalidate_conformance.py DUMP PACKED

DUMP: what `protovalidate-conformance --dump --proto` prints, of github.com/bufbuild/protovalidate.
"""

import json
import lzma
import sys
from base64 import b64encode
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from sluicegate.proxy.rules_process.protoc import descriptor_set_of

# The fields of the suite's results that are packed.
RESULTS = """
syntax = "proto3";
import "buf/validate/validate.proto";
import "google/protobuf/any.proto";
import "google/protobuf/descriptor.proto";
message ResultSet { repeated SuiteResults suites = 3; }
message SuiteResults {
  string name = 1;
  repeated CaseResult cases = 4;
  google.protobuf.FileDescriptorSet fdset = 5;
}
message CaseResult { string name = 1; TestResult wanted = 3; google.protobuf.Any input = 5; }
message TestResult {
  oneof result {
    bool success = 1;
    buf.validate.Violations validation_error = 2;
    string compilation_error = 3;
    string runtime_error = 4;
    string unexpected_error = 5;
  }
}
"""


def packed(dump: bytes) -> dict[str, object]:
    """Return the descriptor sets, each once, and each case with the ids of the rules that it violates, or an error."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor_set_of("results.proto", RESULTS, {})).file:
        pool.Add(file)
    results = message_factory.GetMessageClass(pool.FindMessageTypeByName("ResultSet")).FromString(dump)
    schemas: dict[bytes, int] = {}
    cases = []
    for suite in results.suites:
        schema = schemas.setdefault(suite.fdset.SerializeToString(deterministic=True), len(schemas))
        for case in suite.cases:
            kind = case.wanted.WhichOneof("result")
            ids = [violation.rule_id for violation in case.wanted.validation_error.violations]
            wanted = ids if kind == "validation_error" else kind
            message = case.input.type_url.rpartition("/")[2]
            cases.append([f"{suite.name}: {case.name}", schema, message, b64encode(case.input.value).decode(), wanted])
    return {"schemas": [b64encode(each).decode() for each in schemas], "cases": sorted(cases)}


if __name__ == "__main__":
    found = packed(Path(sys.argv[1]).read_bytes())
    Path(sys.argv[2]).write_bytes(lzma.compress(json.dumps(found).encode(), preset=9 | lzma.PRESET_EXTREME))
    print(len(found["cases"]), "cases,", len(found["schemas"]), "descriptor sets")
