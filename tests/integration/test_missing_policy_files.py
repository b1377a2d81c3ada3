"""If policy files disappear while the proxy runs, their topics stay validated in all workers, and all views show it."""

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.broker.eventually import eventually
from tests.broker.proxy_process import COMMAND, ProxyProcess
from tests.integration.condition_views import active_condition_details, wait_until_begun
from tests.integration.test_reload import AFTER, HOUR, produce_codes_on_connections, wait_for_code
from tests.integration.test_workers import workers_of
from tests.integration.topics import UNVALIDATED, create_topic

if TYPE_CHECKING:
    from playwright.sync_api import Page

_FORBIDDEN, _UNAUTHORIZED = 403, 401


class ProxyWithTeamFile:
    """A proxy whose topic is validated only by a team's file."""

    def __init__(self, proxy: ProxyProcess, bootstrap: str) -> None:
        self.proxy = proxy
        self.bootstrap = bootstrap
        self.topic = create_topic(bootstrap, UNVALIDATED)
        self.teams = proxy.folder / "teams"
        self.teams.mkdir()
        self.team = self.teams / "team.yaml"
        self.text = yaml.safe_dump({"topics": [{"match": self.topic, AFTER: HOUR}]})
        self.team.write_text(self.text)
        self.token = proxy.folder / "token"
        self.token.write_text("sesame")
        proxy.config |= {"topic_files": "teams/*.yaml"}
        proxy.config["admin"]["token_file"] = str(self.token)
        proxy.start()
        assert produce_codes_on_connections(proxy, self.topic) == {32}

    def is_missing(self, name: str = "team.yaml") -> None:
        detail = eventually(
            lambda: active_condition_details(self.proxy).get("policy_file_missing"), what="the condition"
        )
        assert (
            detail == f"{self.teams / name} is missing or unreadable; its last policies stay in force for {self.topic}"
        )
        assert produce_codes_on_connections(self.proxy, self.topic) == {32}

    def is_not_missing(self) -> None:
        eventually(lambda: self.proxy.get("/readyz") == (200, "serving\n"), what="serving")

    def reload(self, *options: str, token: bool = True) -> "subprocess.CompletedProcess[str]":
        command = [COMMAND, "reload", *options, "--admin", self.proxy.admin.removeprefix("http://")]
        command += ["--token-file", str(self.token)] if token else []
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(params=[1, pytest.param(2, marks=pytest.mark.long)], ids=["one process", "two workers"])
def stage(
    request: pytest.FixtureRequest, kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxyWithTeamFile]:
    folder = tmp_path_factory.mktemp("missing")
    proxy = ProxyProcess(folder, kafka_bootstrap, {"workers": request.param, "defaults": {AFTER: 3 * HOUR}})
    try:
        yield ProxyWithTeamFile(proxy, kafka_bootstrap)
    finally:
        proxy.stop()


def test_policies_of_a_missing_file_apply_until_it_returns_or_its_removal_is_accepted(stage: ProxyWithTeamFile) -> None:
    proxy = stage.proxy
    stage.team.unlink()
    stage.is_missing()
    assert proxy.get("/readyz")[0] == 200
    subject = f'sluicegate_condition{{condition="policy_file_missing",subject="{stage.team}"}} 1.0'
    assert subject in proxy.get("/metrics")[1]
    line = json.loads(proxy.wait_for_line("policy files missing; their last policies stay in force"))
    assert line["files"] == {str(stage.team): [stage.topic]}

    stage.team.write_text(stage.text)
    stage.is_not_missing()
    stage.team.rename(stage.teams / "renamed.yaml")
    eventually(lambda: proxy.metric("sluicegate_config_reloads_total") >= 3, what="the renamed file")
    assert proxy.get("/readyz") == (200, "serving\n")
    assert produce_codes_on_connections(proxy, stage.topic) == {32}

    (stage.teams / "renamed.yaml").unlink()
    stage.is_missing("renamed.yaml")
    only_reloaded = stage.reload()
    assert (only_reloaded.returncode, f"policies stay in force ({stage.topic})" in only_reloaded.stdout) == (0, True)
    accepted = stage.reload("--accept-removed")
    assert (accepted.returncode, accepted.stdout.split(": ")[1]) == (0, "reloaded\n"), accepted.stderr
    wait_for_code(proxy, stage.topic, 0)
    assert proxy.get("/readyz") == (200, "serving\n")


def test_policies_of_a_missing_folder_apply_also_in_a_restarted_worker(
    stage: ProxyWithTeamFile, web_ui: "Page | None"
) -> None:
    """The folder has the schema of a rule and a key too, which a restarted worker could not read."""
    schema = stage.teams / "schema.json"
    schema.write_text('{"type": "object"}')
    rule = {"name": "r", "key": {"schema": {"format": "json", "file": "schema.json"}}}
    key = stage.teams / "hashes.key"
    key.write_text("0123456789abcdef")
    hashed = {"name": "h", "action": "hash", "fields": ["mail"], "key_file": "hashes.key"}
    own = {"match": stage.topic, AFTER: HOUR, "rules": [rule]}
    stage.team.write_text(yaml.safe_dump({"topics": [own, {"match": "hashed-*", "sensitive": [hashed]}]}))
    assert stage.reload().returncode == 0
    stage.teams.rename(stage.teams.with_name("elsewhere"))
    wait_until_begun(stage.proxy, "policy_file_missing", web_ui)
    metrics = stage.proxy.get("/metrics")[1]
    for file in (stage.team, schema, key):
        assert f'sluicegate_condition{{condition="policy_file_missing",subject="{file}"}} 1.0' in metrics
    assert produce_codes_on_connections(stage.proxy, stage.topic) == {32}
    if stage.proxy.config["workers"] > 1:
        for worker in workers_of(stage.proxy):
            os.kill(worker, signal.SIGKILL)
        eventually(lambda: stage.proxy.metric("sluicegate_worker_restarts_total") == 2)
        eventually(lambda: stage.proxy.metric("sluicegate_workers") == 2)
        assert produce_codes_on_connections(stage.proxy, stage.topic) == {32}
    assert produce_codes_on_connections(stage.proxy, create_topic(stage.bootstrap, UNVALIDATED, prefix="hashed")) == {
        87
    }, "no JSON"

    stage.proxy.stop()
    stage.proxy.start()
    assert produce_codes_on_connections(stage.proxy, stage.topic) == {0}, "a restart reads the files as they are"
    assert "policy_file_missing" not in active_condition_details(stage.proxy)


def test_a_file_with_no_topics_removes_its_policies_at_once(stage: ProxyWithTeamFile) -> None:
    stage.team.write_text("topics: []\n")

    wait_for_code(stage.proxy, stage.topic, 0)
    assert stage.proxy.get("/readyz") == (200, "serving\n")


def test_a_reload_needs_the_token_and_says_why_a_configuration_is_rejected(stage: ProxyWithTeamFile) -> None:
    for token, status in ((None, _UNAUTHORIZED), ("wrong", _UNAUTHORIZED)):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{stage.proxy.admin}/api/reload", b"", headers)
        with pytest.raises(urllib.error.HTTPError) as rejected:
            urllib.request.urlopen(request, timeout=30)
        assert rejected.value.code == status
        rejected.value.close()
    assert "401" in stage.reload(token=False).stderr

    (stage.proxy.folder / "sluicegate.yaml").write_text("listenn: {}\n")
    rejected_file = stage.reload()
    assert (rejected_file.returncode, "listenn: no such key" in rejected_file.stderr) == (1, True)
    assert produce_codes_on_connections(stage.proxy, stage.topic) == {32}
