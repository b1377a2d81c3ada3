"""If files in `topic_files` and `contracts` disappear, their last policies stay in force unless another file contains
them now."""

import shutil
from pathlib import Path

import pytest

from sluicegate.config.loading import ConfigError, Loaded
from sluicegate.proxy.reload.config_file import NOTHING, ConfigFile
from tests.config.contracts.written import ORDERS
from tests.config.reading import SMALLEST


class Folder:
    """A configuration with included files in `policies/`, which is read repeatedly, as by a proxy."""

    def __init__(self, root: Path, keys: str) -> None:
        self.policies = root / "policies"
        self.policies.mkdir()
        self.main = root / "sluicegate.yaml"
        self.main.write_text(SMALLEST + keys)
        self.file = ConfigFile(self.main, ())
        self.loaded: Loaded | None = None

    def write(self, name: str, content: str) -> None:
        (self.policies / name).write_text(content)

    def remove(self, name: str) -> None:
        (self.policies / name).unlink()

    def read(self) -> list[str]:
        """Read the files as a reload does, and return the patterns of the entries."""
        previous = self.loaded.source if self.loaded is not None else NOTHING
        self.loaded = self.file.read(previous)
        return [topic.match for topic in self.loaded.config.topics]

    @property
    def missing(self) -> dict[str, list[str]]:
        assert self.loaded is not None
        return {file.name: topics for file, topics in self.loaded.source.missing.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path, "topic_files: policies/*.yaml\n")
    folder.write("a.yaml", "topics: [{match: payments*}, {match: ledger}]")
    folder.write("b.yaml", "topics: [{match: orders}]")
    assert folder.read() == ["payments*", "ledger", "orders"]
    return folder


def test_entries_of_a_missing_topic_file_stay_in_order_until_it_returns(folder: Folder) -> None:
    folder.remove("a.yaml")
    for _ in range(2):  # also after the next reload
        assert folder.read() == ["payments*", "ledger", "orders"]
        assert folder.missing == {"a.yaml": ["payments*", "ledger"]}

    folder.write("a.yaml", "topics: [{match: payments*}]")
    assert folder.read() == ["payments*", "orders"]
    assert folder.missing == {}


def test_error_in_a_missing_topic_file_reports_its_line(folder: Folder) -> None:
    folder.remove("a.yaml")
    folder.read()
    folder.main.write_text(SMALLEST + "topic_files: [{path: policies/*.yaml, topics: [orders, ledger]}]\n")

    with pytest.raises(ConfigError, match=r"policies/a\.yaml:1: topics\[0\]\.match: payments\* is not limited to"):
        folder.read()


def test_missing_topic_file_counts_as_a_change_only_until_the_next_read(folder: Folder) -> None:
    folder.remove("a.yaml")
    assert [folder.file.has_changed() for _ in range(2)] == [False, True]
    folder.read()
    assert [folder.file.has_changed() for _ in range(3)] == [False, False, False]


def test_emptied_topic_file_removes_its_policies_at_once(folder: Folder) -> None:
    for content in ("topics: []", "topics:", ""):
        folder.write("a.yaml", content)
        assert folder.read() == ["orders"]
        assert folder.missing == {}

    folder.remove("a.yaml")
    assert (folder.read(), folder.missing) == (["orders"], {})


def test_renamed_topic_file_keeps_its_entries(folder: Folder) -> None:
    (folder.policies / "a.yaml").rename(folder.policies / "z.yaml")

    assert folder.read() == ["orders", "payments*", "ledger"]
    assert folder.missing == {}


def test_keeps_only_entries_of_a_missing_file_that_no_other_file_defines(folder: Folder) -> None:
    folder.remove("a.yaml")
    folder.write("b.yaml", "topics: [{match: orders}, {match: ledger, mode: observe}]")
    for _ in range(2):
        assert folder.read() == ["payments*", "orders", "ledger"]
        assert folder.missing == {"a.yaml": ["payments*"]}

    folder.main.write_text(SMALLEST + "topic_files: policies/*.yaml\ntopics: [{match: payments*}]\n")
    assert folder.read() == ["payments*", "orders", "ledger"]
    assert folder.missing == {}


def test_broad_pattern_of_another_team_does_not_replace_a_missing_topic_file(folder: Folder) -> None:
    folder.remove("a.yaml")
    folder.write("b.yaml", "topics: [{match: '*', checks: none}]")

    assert folder.read() == ["payments*", "ledger", "*"]


def test_missing_policy_folder_keeps_all_its_policies(folder: Folder) -> None:
    shutil.rmtree(folder.policies)

    assert folder.read() == ["payments*", "ledger", "orders"]
    assert folder.missing == {"a.yaml": ["payments*", "ledger"], "b.yaml": ["orders"]}


def test_drops_entries_of_files_that_the_configuration_no_longer_includes(folder: Folder) -> None:
    folder.remove("a.yaml")
    folder.main.write_text(SMALLEST + "topic_files: policies/b*.yaml\n")

    assert (folder.read(), folder.missing) == (["orders"], {})


def test_missing_named_topic_file_is_an_error_only_if_it_was_never_read(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "topic_files: [policies/a.yaml]\n")
    folder.write("a.yaml", "topics: [{match: payments}]")
    folder.read()
    folder.remove("a.yaml")
    assert folder.read() == ["payments"]
    assert folder.missing == {"a.yaml": ["payments"]}

    folder.loaded = None  # as after a restart
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        folder.read()


def test_broken_link_counts_as_a_missing_topic_file(folder: Folder) -> None:
    """When keys are removed, kubelet removes the folder first and the links to its files later."""
    (folder.policies / "a.yaml").rename(folder.policies.parent / "target")
    (folder.policies / "a.yaml").symlink_to("../target")
    folder.read()
    (folder.policies.parent / "target").unlink()

    assert folder.read() == ["payments*", "ledger", "orders"]
    assert folder.missing == {"a.yaml": ["payments*", "ledger"]}


def test_replaced_link_folder_reports_only_the_removed_topic_file_as_missing(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "topic_files: policies/*.yaml\n")
    for name, match in (("..1", "old"), ("..2", "new")):
        (folder.policies / name).mkdir()
        folder.write(f"{name}/kept.yaml", f"topics: [{{match: {match}}}]")
    folder.write("..1/gone.yaml", "topics: [{match: gone}]")
    (folder.policies / "..data").symlink_to("..1")
    for name in ("kept.yaml", "gone.yaml"):
        (folder.policies / name).symlink_to(f"..data/{name}")
    assert folder.read() == ["gone", "old"]

    (folder.policies / "..tmp").symlink_to("..2")
    (folder.policies / "..tmp").replace(folder.policies / "..data")
    assert (folder.read(), folder.missing) == (["gone", "new"], {"gone.yaml": ["gone"]})
    folder.remove("gone.yaml")
    assert (folder.read(), folder.missing) == (["gone", "new"], {"gone.yaml": ["gone"]})


def test_exemptions_and_quotas_of_a_missing_file_stay_until_another_file_has_them(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "topic_files: [{path: policies/*.yaml, topics: 't*', allow: [exempt, quotas]}]\n")
    lists = "exempt: [{client_id: mirror, topics: 't*'}]\nquotas: [{name: q, topic: 't*', bytes_per_second: 5}]\n"
    folder.write("a.yaml", f"topics: [{{match: t1}}]\n{lists}")
    folder.read()
    folder.remove("a.yaml")
    folder.read()
    assert folder.loaded is not None
    assert (len(folder.loaded.config.exempt), len(folder.loaded.config.quotas)) == (1, 1)

    folder.write("b.yaml", lists)  # a second quota with the same name would be an error
    assert (folder.read(), folder.missing) == (["t1"], {"a.yaml": ["t1"]})
    assert (len(folder.loaded.config.exempt), len(folder.loaded.config.quotas)) == (1, 1)


def test_configuration_file_is_never_reported_as_a_missing_topic_file(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "topic_files: '*.yaml'\ntopics: [{match: own}]\n")
    assert (folder.read(), folder.missing) == (["own"], {})
    assert (folder.read(), folder.missing) == (["own"], {})


def test_missing_contract_keeps_its_rules_until_another_file_has_them(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "contracts: policies/*.odcs.yaml\n")
    folder.write("orders.odcs.yaml", ORDERS)
    topics = folder.read()
    assert folder.loaded is not None
    rules = folder.loaded.config.topics[0].rules
    folder.remove("orders.odcs.yaml")

    for _ in range(2):
        assert (folder.read(), folder.missing) == (topics, {"orders.odcs.yaml": topics})
        assert folder.loaded.config.topics[0].rules == rules

    folder.write("renamed.odcs.yaml", ORDERS)
    assert (folder.read(), folder.missing) == (topics, {})
