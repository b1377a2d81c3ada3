"""Distributes test files to parallel processes, each with its own brokers.

A file's tests stay in one process. So do files that share a fixture that is slow to start: a cluster, or a Spark
session, which is fast only after it has run similar jobs.

`TEST_END` (seconds since the epoch, set by `.ci/run`) is the time after which no test begins. The summary lists the
omitted tests. Without this limit, a run that exceeds CI's time would have no result at all. On an idle machine, no test
is omitted.
"""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

_ROOT = Path(__file__).parents[1]
_END = float(os.environ.get("TEST_END") or "inf")

# Files by their shared fixture. There are two groups if one process would otherwise finish last.
_TOGETHER: dict[str, dict[str, tuple[str, ...]]] = {
    "pipeline": {
        "a session that repairs": (
            *("clean_topic", "cleaned_topics", "difficult_topics", "moved_leaders", "repair", "replay"),
            *("replay_findings", "tables", "tiered_topics", "verify"),
        ),
        "a session that audits": (
            *("advised_limits", "extract", "fewer_producers", "functions", "jobs", "audit", "large_partition"),
            *("notebook", "profile", "raw_source", "unreadable", "violations"),
            *("topics_that_go", "watch", "watch_outage", "watch_webhook"),
        ),
        "a session beside commands": ("command", "folder_lock", "interrupted_calls", "output_folder"),
        "a broker that asks the pipeline for logins": ("acls", "security_protocol"),
    },
    "integration": {
        "three brokers": ("broker_goes_first", "clients", "faults", "operation"),
        "brokers that make no topic by themselves": ("quarantine", "violation_topic"),
        "a broker that asks for logins": (
            "bootstrap",
            "discovery",
            "doctor",
            "guarded_writing",
            "logins",
            "sni",
            "tls",
        ),
    },
    "registry": {
        "a schema registry": (
            "apicurio",
            "apicurio_native",
            "guarded",
            "policies_page",
            "protobuf_serializers",
            "sensitive_framings",
            "survey",
        ),
    },
}
# Every test in these folders takes seconds, even in its short form. Elsewhere, the tests or files themselves have the
# mark.
_LONG_SUITES = ("tests/fuzz/", "tests/load/", "tests/packaging/")
_LONG_BY_FIXTURE = ("tests/conformance/", "tests/faults/")
_SHARES = {
    f"tests/{folder}/test_{name}.py": what
    for folder, shared in _TOGETHER.items()
    for what, names in shared.items()
    for name in names
}


class FilesThatShare(LoadFileScheduling):
    """Each process takes the next file or group of files. Spark uses the processors, tests with brokers mostly wait;
    so every second process prefers files without Spark.
    """

    def _assign_work_unit(self, node: "WorkerController") -> None:
        wants_spark = self.nodes.index(node) % 2 == 0
        wanted = next((scope for scope in self.workqueue if _has_spark(scope) is wants_spark), None)
        if wanted is not None:
            self.workqueue.move_to_end(wanted, last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "two brokers of each release" if file.startswith("tests/conformance/") else _SHARES.get(file, file)


def _has_spark(scope: str) -> bool:
    return scope in _TOGETHER["pipeline"] or scope.startswith("tests/pipeline/")


def _may_be_long(file: Path) -> bool:
    name = str(file.relative_to(_ROOT))
    return name.startswith(_LONG_SUITES + _LONG_BY_FIXTURE) or "mark.long" in file.read_text(encoding="utf-8")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files without long tests in a run of long tests: reading all costs each process half a minute."""
    if config.option.markexpr != "long" or collection_path.suffix != ".py":
        return None
    return None if _may_be_long(collection_path) else True


@pytest.hookimpl(tryfirst=True)  # before tests that are not selected are removed
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(_LONG_SUITES):
            item.add_marker(pytest.mark.long)
    marked = {item.path for item in items if item.get_closest_marker("long") is not None}
    missed = sorted(str(file) for file in marked if not _may_be_long(file))
    if missed:
        raise pytest.UsageError(f"long by a fixture, which _LONG_BY_FIXTURE in {__file__} has to name: {missed}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.time() > _END:
        pytest.skip("LEFT OUT: the time of this run (TEST_END) was over")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> FilesThatShare | None:
    return FilesThatShare(config, log) if config.getvalue("dist") == "loadfile" else None
