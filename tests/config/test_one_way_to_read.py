"""The serving code reads files only through `config/disk/regular_file.py`, which does not wait for a FIFO or a disk."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("config", "validation", "protocol", "proxy")
_OWN = "of the system or of ourselves, named by no configuration"
_COMMAND = "of a command, which serves no clients"
ALLOWED = {
    "config/disk/regular_file.py": "the one way",
    "config/files/patterns.py": "lists folders, with a deadline of its callers",
    "config/files/near_files.py": "lists a folder within a deadline",
    "config/contracts/document.py": _OWN,
    "config/contracts/asyncapi/published_schemas.py": _OWN,
    "proxy/network/tls/contexts.py": "writes and reads copies in memory",
    "proxy/webui/responses.py": _OWN,
    "proxy/webui/vendored.py": _OWN,
    "proxy/network/spare_descriptor.py": _OWN,
    "proxy/admin/connections.py": _OWN,
    "proxy/cli/build_facts.py": _OWN,
    "proxy/server/process_resources.py": _OWN,
    "proxy/workers/worker_process.py": _OWN,
    "proxy/reporting/build_info.py": _OWN,
    "proxy/reporting/logs/setup.py": _OWN,
    "proxy/rules_process/host.py": _OWN,
    "proxy/rules_process/evaluator.py": _OWN,
    "proxy/rules_process/protoc.py": "writes temporary files, in a process that can be stopped",
    "proxy/reporting/events/violation_writer.py": "writes, in a thread of its own",
    "proxy/state/snapshot_file.py": "writes within a deadline",
    "proxy/cli/cluster_commands.py": _COMMAND,
    "proxy/demo/running.py": _COMMAND,
    "proxy/cli/policy_test_report.py": _COMMAND,
    "proxy/cli/dead_letter_html.py": _COMMAND,
    "proxy/cli/policy_cases.py": _COMMAND,
    "proxy/cli/policy_tests.py": _COMMAND,
    "proxy/cli/record_input.py": _COMMAND,
    "proxy/cli/sandbox_command.py": _COMMAND,
    "proxy/doctor/outputs.py": _COMMAND,
    "proxy/sandbox/policies.py": _COMMAND,
    "proxy/doctor/shared_state.py": _COMMAND,
    "proxy/cli/health_check.py": _COMMAND,
    "proxy/watching/topic_violations.py": _COMMAND,
}
_OF_PATHS = {
    *("read_text", "read_bytes", "write_text", "write_bytes", "stat", "lstat", "exists", "is_file", "is_dir"),
    *("iterdir", "scandir", "listdir", "glob", "iglob", "rglob", "walk", "resolve", "samefile", "readlink", "access"),
    *("load_cert_chain", "load_verify_locations"),
}


def calls_on_files(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name) and function.id == "open":
            yield "open"
        elif isinstance(function, ast.Attribute):
            of_os = isinstance(function.value, ast.Name) and function.value.id in ("os", "io")
            with_mode = any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in node.args)
            if function.attr in _OF_PATHS or (function.attr == "open" and (of_os or with_mode)):
                yield function.attr
        if any(keyword.arg == "cafile" for keyword in node.keywords):
            yield "cafile"


def python_modules() -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def test_only_allowed_modules_read_files() -> None:
    found = {module: list(calls_on_files((ROOT / module).read_text())) for module in python_modules()}

    assert {module: calls for module, calls in found.items() if calls and module not in ALLOWED} == {}
    assert [module for module in ALLOWED if not found[module]] == []


@pytest.mark.parametrize(
    "call",
    ["open(name)", "Path(name).open('rb')", "os.open(name, 0)", "file.read_bytes()", "make(cafile=name)", "p.stat()"],
)
def test_file_reading_calls_are_detected_in_source(call: str) -> None:
    assert list(calls_on_files(call)) != []
