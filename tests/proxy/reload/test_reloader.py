"""Tests reloads within the process: changes, rejections, and files that do not respond."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from sluicegate.config.disk.deadline import FileUnreadable
from sluicegate.config.loading import Loaded
from sluicegate.proxy.reload import reloader as module
from sluicegate.proxy.reload.config_check import check_policies
from sluicegate.proxy.reload.config_file import ConfigFile
from sluicegate.proxy.reload.policy_history import PolicyHistory
from sluicegate.proxy.reload.reload_request import MissingFile, ReloadResult
from sluicegate.proxy.reload.reloader import Reloader
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from sluicegate.validation.rules.rule import RuleUnusable
from tests.config.reading import SMALLEST
from tests.proxy.network.wires import wait_until


def rejection_detail(status: Status) -> str | None:
    return next((each.detail for each in status.active() if each.condition is Condition.CONFIGURATION_REJECTED), None)


class Stage:
    """A reloader of one file, and what it has put in force."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = ConfigFile(path, ())
        self.in_force = [self.file.read()]
        self.status = Status()
        self.counters = Counters()
        running = self.in_force[0]
        self.history = PolicyHistory()
        self.reloader = Reloader(
            self.file, running, check_policies, self.adopt, self.status, self.counters, self.history
        )

    async def adopt(self, loaded: Loaded) -> None:
        self.in_force.append(loaded)

    def write(self, text: str) -> None:
        """Exchange the file in one step, so that the watcher never sees half of it."""
        written = self.path.with_suffix(".new")
        written.write_text(text)
        written.replace(self.path)

    async def has_counted(self, reloads: int, failures: int) -> None:
        wanted = (reloads, failures)
        await wait_until(lambda: (self.counters.config_reloads, self.counters.config_reload_failures) == wanted)


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.02)
    path = tmp_path / "c.yaml"
    path.write_text(SMALLEST + "topics: [{match: orders, mode: observe}]\n")
    stage = Stage(path)
    running = asyncio.create_task(stage.reloader.run())
    yield stage
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_changed_configuration_file_takes_effect(stage: Stage) -> None:
    stage.write(SMALLEST + "topics: [{match: payments}]\n")

    await stage.has_counted(1, 0)

    assert [topic.match for topic in stage.in_force[-1].config.topics] == ["payments"]
    assert rejection_detail(stage.status) is None


async def test_reload_reports_stricter_and_looser_policies_and_changed_file(stage: Stage) -> None:
    began_ms = time.time_ns() // 1_000_000
    text = f"{SMALLEST}topics:\n  - {{match: orders, cleanup.policy: compact}}\n"

    with capture_logs() as logs:
        stage.write(text)
        await stage.has_counted(1, 0)
        await wait_until(lambda: any(line["event"] == "policies changed" for line in logs))

    (line,) = [line for line in logs if line["event"] == "policies changed"]
    where = f"{stage.path}:4, topics[0].cleanup.policy"
    assert line["files"] == {str(stage.path): sha256(text.encode()).hexdigest()}
    assert line["stricter"] == [
        f"orders: stricter: cleanup.policy delete -> compact ({where})",
        "orders: stricter: mode observe -> reject (sluicegate default)",
    ]
    assert (line["looser"], line["changed"], line["count"]) == ([], [], 2)
    await wait_until(stage.history.as_json)
    (kept,) = stage.history.as_json()
    assert began_ms <= kept.pop("time_ms") <= time.time_ns() // 1_000_000
    assert kept == {
        "files": [{"file": str(stage.path), "sha256": sha256(text.encode()).hexdigest(), "commit": None}],
        "other_files": 0,
        "count": 2,
        "compared": True,
        "stricter": line["stricter"],
        "looser": [],
        "changed": [],
    }


async def test_rejected_configuration_reports_each_problem_and_is_not_applied(stage: Stage) -> None:
    stage.write(SMALLEST + "limits: {max_in_flight: many}\ndrain_timeout_seconds: soon\n")

    await stage.has_counted(0, 1)

    assert rejection_detail(stage.status) is not None
    assert "limits.max_in_flight" in rejection_detail(stage.status)
    assert "configuration rejected" not in rejection_detail(
        stage.status
    )  # the name of the condition states this already
    assert len(stage.in_force) == 1

    stage.write(SMALLEST)
    await stage.has_counted(1, 1)
    assert rejection_detail(stage.status) is None


async def test_rejects_rule_that_cannot_be_compiled_and_names_its_line(stage: Stage) -> None:
    rule = "{name: r, value: {schema: {format: json, file: none.json}}}"
    stage.write(SMALLEST + f"topics:\n  - match: a\n    rules: [{rule}]\n")

    await stage.has_counted(0, 1)

    assert rejection_detail(stage.status) is not None
    assert "topics[0].rules[0]: rule r" in rejection_detail(stage.status)
    assert "none.json cannot be read" in rejection_detail(stage.status)


async def test_hanging_load_is_logged_once_and_file_is_loaded_when_it_responds(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop continues during the load, and the file takes effect without another change."""
    monkeypatch.setattr(module, "_LOAD_SECONDS", 0.05)
    goes_on = threading.Event()
    read = stage.file.read

    def load_and_hang(previous: Mapping[Path, bytes]) -> Loaded:
        goes_on.wait(60)
        return read(previous)

    monkeypatch.setattr(stage.file, "read", load_and_hang)
    stage.write(SMALLEST + "topics: [{match: payments}]\n")

    await stage.has_counted(0, 1)
    assert rejection_detail(stage.status) is not None
    assert "has not responded" in rejection_detail(stage.status)
    assert stage.counters.config_reload_failures == 1
    goes_on.set()
    await stage.has_counted(1, 1)

    assert [topic.match for topic in stage.in_force[-1].config.topics] == ["payments"]
    assert rejection_detail(stage.status) is None


async def test_a_hanging_file_check_is_logged_once_and_the_file_is_loaded_later(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    has_changed = stage.file.has_changed

    def raise_bug() -> bool:
        nonlocal looks
        looks += 1
        if looks < 5:
            raise FileUnreadable(110, "its file system has not responded within 5 s", str(stage.path))
        return has_changed()

    monkeypatch.setattr(stage.file, "has_changed", raise_bug)

    await stage.has_counted(1, 1)
    assert looks >= 5


@pytest.mark.internal_error
@pytest.mark.parametrize("error", [RuleUnusable("it has changed"), ValueError("a bug")], ids=["rule", "fault"])
async def test_rejection_after_file_becomes_readable_is_reported_once(
    error: Exception, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_changed, looks = stage.file.has_changed, 0

    def fail_once() -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise FileUnreadable(110, "its file system has not responded within 5 s", str(stage.path))
        return has_changed()

    async def reject_configuration(_: Loaded) -> None:
        raise error

    monkeypatch.setattr(stage.reloader, "_adopt", reject_configuration)
    monkeypatch.setattr(stage.file, "has_changed", fail_once)

    await stage.has_counted(0, 2)
    after = looks
    await wait_until(lambda: looks > after + 5)

    assert stage.counters.config_reload_failures == 2


@pytest.mark.internal_error
async def test_reloader_keeps_running_after_error_while_adopting_configuration(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    adopted = stage.adopt

    async def raise_bug(_: Loaded) -> None:
        monkeypatch.setattr(stage.reloader, "_adopt", adopted)
        raise ValueError("a bug")

    monkeypatch.setattr(stage.reloader, "_adopt", raise_bug)
    stage.reloader.request()
    await stage.has_counted(0, 1)

    stage.reloader.request()
    await stage.has_counted(1, 1)


def missing_file_details(status: Status) -> dict[str, str]:
    return {each.subject: each.detail for each in status.active() if each.condition is Condition.POLICY_FILE_MISSING}


async def test_policies_of_removed_folder_stay_in_force_until_removal_is_accepted(stage: Stage) -> None:
    """The folder also contains the schema of a rule."""
    teams = stage.path.parent / "teams"
    teams.mkdir()
    (teams / "orders.json").write_text('{"type": "object"}')
    rule = "{name: r, value: {schema: {format: json, file: orders.json}}}"
    policy = f"topics: [{{match: orders, rules: [{rule}]}}, {{match: payments}}]\n"
    (teams / "team.yaml").write_text(policy)
    text = SMALLEST + "topic_files: teams/*.yaml\n"
    stage.write(text)
    await stage.has_counted(1, 0)

    with capture_logs() as logs:
        teams.rename(teams.with_name("elsewhere"))
        await wait_until(lambda: missing_file_details(stage.status))
    file = str(teams / "team.yaml")
    schema = str(teams / "orders.json")
    gone = {
        file: f"{file} is missing or unreadable; its last policies stay in force for orders, payments",
        schema: f"{schema} is missing or unreadable; its last policies stay in force for orders",
    }
    assert missing_file_details(stage.status) == gone
    (line,) = [line for line in logs if line["event"] == "policy files missing; their last policies stay in force"]
    assert line["files"] == {file: ["orders", "payments"], schema: ["orders"]}
    assert len(stage.in_force) == 2, "nothing is compiled again"
    assert rejection_detail(stage.status) is None

    kept = [MissingFile(teams / "team.yaml", ["orders", "payments"]), MissingFile(teams / "orders.json", ["orders"])]
    assert await stage.reloader.reload(accepts_removed=False) == ReloadResult([], kept)
    assert missing_file_details(stage.status) == gone
    teams.with_name("elsewhere").rename(teams)
    await wait_until(lambda: not missing_file_details(stage.status))
    assert rejection_detail(stage.status) is None

    (teams / "team.yaml").unlink()
    await wait_until(lambda: missing_file_details(stage.status))
    assert (await stage.reloader.reload(accepts_removed=False)).missing
    with capture_logs() as logs:
        assert await stage.reloader.reload(accepts_removed=True) == ReloadResult([], [])
    assert {"event": "removed policy files accepted", "log_level": "warning", "files": [file]} in logs
    assert missing_file_details(stage.status) == {}
    assert stage.in_force[-1].config.topics == ()
    assert (await stage.reloader.reload(accepts_removed=False)).missing == []


async def test_removal_is_not_accepted_if_configuration_is_rejected(stage: Stage) -> None:
    (stage.path.parent / "team.yaml").write_text("topics: [{match: orders}]\n")
    stage.write(SMALLEST + "topic_files: team.yaml\n")
    await stage.has_counted(1, 0)
    (stage.path.parent / "team.yaml").unlink()
    await wait_until(lambda: missing_file_details(stage.status))

    result = await stage.reloader.reload(accepts_removed=True)

    assert "team.yaml: cannot be read: No such file or directory" in result.problems[0]
    assert [each.topics for each in result.missing] == [["orders"]]
    assert missing_file_details(stage.status)
    assert [topic.match for topic in stage.in_force[-1].config.topics] == ["orders"]


PERSON = 'syntax = "proto3"; message Person { string name = 1; }'
ORDER = 'syntax = "proto3"; import "person.proto"; message Order { Person by = 1; }'
OF_FILE = {
    "json": "{schema: {format: json, file: schema.json}}",
    "avro": "{schema: {format: avro, file: schema.json}}",
    "protobuf": "{schema: {format: protobuf, message: Order, file: order.proto}}",
}


@pytest.mark.parametrize(
    ("keys", "file", "topics"),
    [
        (f"topics: [{{match: orders, rules: [{{name: r, value: {OF_FILE['json']}}}]}}]", "schema.json", "orders"),
        (f"topics: [{{match: orders, rules: [{{name: r, key: {OF_FILE['avro']}}}]}}]", "schema.json", "orders"),
        (f"defaults: {{rules: [{{name: r, value: {OF_FILE['json']}}}]}}", "schema.json", "defaults"),
        (f"floor: [{{match: o*, rules: [{{name: r, value: {OF_FILE['json']}}}]}}]", "schema.json", "o*"),
        (f"topics: [{{match: orders, rules: [{{name: r, value: {OF_FILE['protobuf']}}}]}}]", "order.proto", "orders"),
        (f"topics: [{{match: orders, rules: [{{name: r, value: {OF_FILE['protobuf']}}}]}}]", "person.proto", "orders"),
        (
            "topics: [{match: orders, sensitive: [{name: s, action: mask, fields: [a], "
            "schema: {format: avro, file: schema.json}}]}]",
            "schema.json",
            "orders",
        ),
        (
            "topics: [{match: orders, sensitive: [{name: s, action: hash, fields: [a], key_file: hashes.key}]}]",
            "hashes.key",
            "orders",
        ),
    ],
    ids=["rule", "key", "defaults", "floor", "protobuf", "import", "sensitive", "the key of hashes"],
)
async def test_removed_schema_or_key_file_stays_in_force_until_it_is_restored(
    stage: Stage, keys: str, file: str, topics: str
) -> None:
    folder = stage.path.parent
    (folder / "person.proto").write_text(PERSON)
    (folder / "order.proto").write_text(ORDER)
    (folder / "hashes.key").write_text("0123456789abcdef\n")
    fields = '[{"name": "a", "type": "string"}]'
    (folder / "schema.json").write_text(f'{{"type": "record", "name": "R", "fields": {fields}}}')
    if "format: json" in keys:
        (folder / "schema.json").write_text('{"type": "object"}')
    stage.write(f"{SMALLEST}{keys}\n")
    await stage.has_counted(1, 0)
    content = (folder / file).read_text()
    (schema,) = stage.in_force[-1].source.schemas.values()

    (folder / file).unlink()
    await wait_until(lambda: missing_file_details(stage.status))
    named = str(folder / ("order.proto" if "proto" in file else file))
    assert missing_file_details(stage.status) == {
        named: f"{named} is missing or unreadable; its last policies stay in force for {topics}"
    }

    stage.write(f"{SMALLEST}{keys}\nregistries: {{}}\nclient_owners: []\n")  # another change takes effect
    assert (await stage.reloader.reload(accepts_removed=False)).problems == []
    assert [*stage.in_force[-1].source.schemas.values()] == [schema]
    assert missing_file_details(stage.status), "the next reload keeps it too"
    rejected = await stage.reloader.reload(
        accepts_removed=True
    )  # a rule names the registry, so no other part can be applied
    assert file in rejected.problems[0]
    assert missing_file_details(stage.status)

    (folder / file).write_text(content)
    await wait_until(lambda: not missing_file_details(stage.status))
    assert rejection_detail(stage.status) is None


async def test_invalid_schema_in_existing_file_is_rejected(stage: Stage) -> None:
    (stage.path.parent / "schema.json").write_text('{"type": "object"}')
    stage.write(f"{SMALLEST}topics: [{{match: orders, rules: [{{name: r, value: {OF_FILE['json']}}}]}}]\n")
    await stage.has_counted(1, 0)

    (stage.path.parent / "schema.json").write_text("{")

    assert "the schema is not JSON" in (await stage.reloader.reload(accepts_removed=False)).problems[0]
    assert not missing_file_details(stage.status)
