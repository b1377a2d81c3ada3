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
from tests.integration.condition_views import active_condition_details, wait_until_condition_begun
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

    def check_missing_file_is_reported(self, name: str = "team.yaml") -> None:
        detail = eventually(
            lambda: active_condition_details(self.proxy).get("policy_file_missing"), what="the condition"
        )
        assert (
            detail == f"{self.teams / name} is missing or unreadable; its last policies stay in force for {self.topic}"
        )
        assert produce_codes_on_connections(self.proxy, self.topic) == {32}

    def wait_until_serving(self) -> None:
        eventually(lambda: self.proxy.get("/readyz") == (200, "serving\n"), what="serving")

    def reload(self, *options: str, token: bool = True) -> "subprocess.CompletedProcess[str]":
        command = [COMMAND, "reload", *options, "--admin", self.proxy.admin.removeprefix("http://")]
        command += ["--token-file", str(self.token)] if token else []
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(params=[1, pytest.param(2, marks=pytest.mark.long)], ids=["one process", "two workers"])
def proxy_with_team_file(
    request: pytest.FixtureRequest, kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxyWithTeamFile]:
    folder = tmp_path_factory.mktemp("missing")
    proxy = ProxyProcess(folder, kafka_bootstrap, {"workers": request.param, "defaults": {AFTER: 3 * HOUR}})
    try:
        yield ProxyWithTeamFile(proxy, kafka_bootstrap)
    finally:
        proxy.stop()


def test_policies_of_a_missing_file_apply_until_it_returns_or_its_removal_is_accepted(
    proxy_with_team_file: ProxyWithTeamFile,
) -> None:
    proxy = proxy_with_team_file.proxy
    proxy_with_team_file.team.unlink()
    proxy_with_team_file.check_missing_file_is_reported()
    assert proxy.get("/readyz")[0] == 200
    subject = f'sluicegate_condition{{condition="policy_file_missing",subject="{proxy_with_team_file.team}"}} 1.0'
    assert subject in proxy.get("/metrics")[1]
    line = json.loads(proxy.wait_for_line("policy files missing; their last policies stay in force"))
    assert line["files"] == {str(proxy_with_team_file.team): [proxy_with_team_file.topic]}

    proxy_with_team_file.team.write_text(proxy_with_team_file.text)
    proxy_with_team_file.wait_until_serving()
    proxy_with_team_file.team.rename(proxy_with_team_file.teams / "renamed.yaml")
    eventually(lambda: proxy.metric("sluicegate_config_reloads_total") >= 3, what="the renamed file")
    assert proxy.get("/readyz") == (200, "serving\n")
    assert produce_codes_on_connections(proxy, proxy_with_team_file.topic) == {32}

    (proxy_with_team_file.teams / "renamed.yaml").unlink()
    proxy_with_team_file.check_missing_file_is_reported("renamed.yaml")
    only_reloaded = proxy_with_team_file.reload()
    assert (
        only_reloaded.returncode,
        f"policies stay in force ({proxy_with_team_file.topic})" in only_reloaded.stdout,
    ) == (0, True)
    accepted = proxy_with_team_file.reload("--accept-removed")
    assert (accepted.returncode, accepted.stdout.split(": ")[1]) == (0, "reloaded\n"), accepted.stderr
    wait_for_code(proxy, proxy_with_team_file.topic, 0)
    assert proxy.get("/readyz") == (200, "serving\n")


def test_policies_of_a_missing_folder_apply_also_in_a_restarted_worker(
    proxy_with_team_file: ProxyWithTeamFile, web_ui: "Page | None"
) -> None:
    """The folder has the schema of a rule and a key too, which a restarted worker could not read."""
    schema = proxy_with_team_file.teams / "schema.json"
    schema.write_text('{"type": "object"}')
    rule = {"name": "r", "key": {"schema": {"format": "json", "file": "schema.json"}}}
    key = proxy_with_team_file.teams / "hashes.key"
    key.write_text("0123456789abcdef")
    hashed = {"name": "h", "action": "hash", "fields": ["mail"], "key_file": "hashes.key"}
    own = {"match": proxy_with_team_file.topic, AFTER: HOUR, "rules": [rule]}
    proxy_with_team_file.team.write_text(
        yaml.safe_dump({"topics": [own, {"match": "hashed-*", "sensitive": [hashed]}]})
    )
    assert proxy_with_team_file.reload().returncode == 0
    proxy_with_team_file.teams.rename(proxy_with_team_file.teams.with_name("elsewhere"))
    wait_until_condition_begun(proxy_with_team_file.proxy, "policy_file_missing", web_ui)
    metrics = proxy_with_team_file.proxy.get("/metrics")[1]
    for file in (proxy_with_team_file.team, schema, key):
        assert f'sluicegate_condition{{condition="policy_file_missing",subject="{file}"}} 1.0' in metrics
    assert produce_codes_on_connections(proxy_with_team_file.proxy, proxy_with_team_file.topic) == {32}
    if proxy_with_team_file.proxy.config["workers"] > 1:
        for worker in workers_of(proxy_with_team_file.proxy):
            os.kill(worker, signal.SIGKILL)
        eventually(lambda: proxy_with_team_file.proxy.metric("sluicegate_worker_restarts_total") == 2)
        eventually(lambda: proxy_with_team_file.proxy.metric("sluicegate_workers") == 2)
        assert produce_codes_on_connections(proxy_with_team_file.proxy, proxy_with_team_file.topic) == {32}
    assert produce_codes_on_connections(
        proxy_with_team_file.proxy, create_topic(proxy_with_team_file.bootstrap, UNVALIDATED, prefix="hashed")
    ) == {87}, "no JSON"

    proxy_with_team_file.proxy.stop()
    proxy_with_team_file.proxy.start()
    assert produce_codes_on_connections(proxy_with_team_file.proxy, proxy_with_team_file.topic) == {0}, (
        "a restart reads the files as they are"
    )
    assert "policy_file_missing" not in active_condition_details(proxy_with_team_file.proxy)


def test_a_file_with_no_topics_removes_its_policies_at_once(proxy_with_team_file: ProxyWithTeamFile) -> None:
    proxy_with_team_file.team.write_text("topics: []\n")

    wait_for_code(proxy_with_team_file.proxy, proxy_with_team_file.topic, 0)
    assert proxy_with_team_file.proxy.get("/readyz") == (200, "serving\n")


def test_a_reload_needs_the_token_and_says_why_a_configuration_is_rejected(
    proxy_with_team_file: ProxyWithTeamFile,
) -> None:
    for token, status in ((None, _UNAUTHORIZED), ("wrong", _UNAUTHORIZED)):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{proxy_with_team_file.proxy.admin}/api/reload", b"", headers)
        with pytest.raises(urllib.error.HTTPError) as rejected:
            urllib.request.urlopen(request, timeout=30)
        assert rejected.value.code == status
        rejected.value.close()
    assert "401" in proxy_with_team_file.reload(token=False).stderr

    (proxy_with_team_file.proxy.folder / "sluicegate.yaml").write_text("listenn: {}\n")
    rejected_file = proxy_with_team_file.reload()
    assert (rejected_file.returncode, "listenn: no such key" in rejected_file.stderr) == (1, True)
    assert produce_codes_on_connections(proxy_with_team_file.proxy, proxy_with_team_file.topic) == {32}
