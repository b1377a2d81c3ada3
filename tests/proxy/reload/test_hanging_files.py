"""If a FIFO takes a file's place, or a file system hangs, the proxy continues, names the file, and can still stop at
once."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.broker.certificates import Authority
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess

_HANGING = Path(__file__).with_name("hanging")
_AT_ONCE_SECONDS = 5.0
_TOKEN = "open sesame"


class Stage:
    """A proxy without a cluster, and the files that its configuration names; `file` finds them by key."""

    def __init__(self, folder: Path) -> None:
        authority = Authority(folder)
        own, of_ours = authority.sign("own"), authority.sign("ours")
        (folder / "token").write_text(_TOKEN)
        (folder / "password").write_text("secret")
        (folder / "teams").mkdir()
        (folder / "teams" / "a.yaml").write_text("topics: [{match: a}]")
        (folder / "schema.json").write_text("{}")
        self.proxy = ProxyProcess(folder, "127.0.0.1:1")
        self.proxy.environment["PYTHONPATH"] = str(_HANGING)
        self.proxy.config["listen"]["tls"] = {
            **own.files,
            "client_auth": "requested",
            "client_ca_file": str(authority.file),
        }
        self.proxy.config["upstream"] |= {
            "tls": {"ca_file": str(authority.file), **of_ours.files},
            "sasl": {"mechanism": "PLAIN", "username": "u", "password_file": str(folder / "password")},
        }
        self.proxy.config["admin"]["token_file"] = str(folder / "token")
        self.proxy.config["topic_files"] = "teams/*.yaml"
        schema = {"format": "json", "file": str(folder / "schema.json")}
        self.proxy.config["topics"] = [{"match": "s", "rules": [{"name": "r", "value": {"schema": schema}}]}]
        self.folder = folder

    def file(self, name: str) -> Path:
        return self.folder / name

    def change_policies(self) -> None:
        main = self.file("sluicegate.yaml")
        main.write_text(main.read_text() + "# another\n")

    def check_admin_responds(self) -> None:
        """Check that the admin endpoint answers every page immediately."""
        for path in ("/livez", "/metrics"):
            began_at = time.monotonic()
            status, text = self.proxy.get(path)
            assert status == 200, text
            assert time.monotonic() - began_at < _AT_ONCE_SECONDS

    def stops_at_once(self) -> None:
        assert self.proxy.process is not None
        began_at = time.monotonic()
        self.proxy.terminate()
        assert self.proxy.process.wait(60) == 0
        assert time.monotonic() - began_at < _AT_ONCE_SECONDS


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    made.proxy.start(ready=False)
    yield made
    made.proxy.stop()


def wait_for_file_check(_stage: Stage) -> None:
    """Do nothing: the proxy checks the file every second."""


def ask_with_token(stage: Stage) -> None:
    stage.proxy.get("/api/live")


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file, and what makes the proxy read it. `logged` is the log line while the file system hangs, None without one;
    none; `kept` is the one while it is a FIFO.
    """

    name: str
    logged: str | None
    kept: str
    trigger: Callable[[Stage], None] = wait_for_file_check


_RELOAD, _TLS = "configuration rejected", "changed certificates rejected"
_UNUSABLE = '"condition": "file_unusable"'
_NO_POLICY_FILE = "policy files missing"
FILES = {
    "configuration": NamedFile("sluicegate.yaml", _RELOAD, _RELOAD),
    "topics": NamedFile("teams/a.yaml", _RELOAD, _RELOAD),
    "schema": NamedFile("schema.json", _RELOAD, _NO_POLICY_FILE, Stage.change_policies),
    "certificate": NamedFile("own.crt", _TLS, _UNUSABLE),
    "key": NamedFile("own.key", _TLS, _UNUSABLE),
    "trusted": NamedFile("ca.pem", _TLS, _UNUSABLE),
    "own certificate": NamedFile("ours.crt", _TLS, _UNUSABLE),
    "token": NamedFile("token", None, _UNUSABLE, ask_with_token),
}
_SHORT = ("configuration", "own certificate", "token")  # one for each way of reading: a reload, TLS, a request


@pytest.mark.parametrize(
    "which", [pytest.param(which, marks=() if which in _SHORT else pytest.mark.long) for which in FILES]
)
def test_fifo_in_place_of_file_does_not_block_proxy(which: str, stage: Stage) -> None:
    named = FILES[which]
    path = stage.file(named.name)
    content = path.read_bytes()
    path.unlink()
    os.mkfifo(path)

    named.trigger(stage)

    line = stage.proxy.wait_for_line(named.kept)
    assert str(path) in line
    assert named.kept == _NO_POLICY_FILE or "expected a regular file, found a FIFO" in line
    stage.check_admin_responds()
    path.unlink()
    path.write_bytes(content)
    stage.change_policies()
    stage.proxy.wait_for_line("configuration reloaded")
    stage.check_admin_responds()
    stage.stops_at_once()


@pytest.mark.long
@pytest.mark.parametrize("which", FILES)
def test_hanging_file_system_does_not_block_proxy_and_file_is_read_later(which: str, stage: Stage) -> None:
    named = FILES[which]
    path = stage.file(named.name)
    hangs = path.with_name(path.name + ".hangs")
    hangs.touch()
    path.write_bytes(path.read_bytes() + b"\n")

    named.trigger(stage)

    if named.logged is not None:
        line = stage.proxy.wait_for_line(named.logged)
        assert str(path) in line
        assert "its file system has not responded" in line
    stage.check_admin_responds()
    hangs.unlink()
    stage.change_policies()
    stage.proxy.wait_for_line("configuration reloaded")
    if named.logged == _TLS:
        stage.proxy.wait_for_line("certificates reloaded")
    eventually(lambda: "rejected" not in stage.proxy.get("/readyz")[1], what="/readyz without the file")
    stage.check_admin_responds()
    stage.stops_at_once()


@pytest.mark.long
@pytest.mark.parametrize("which", ["configuration", "certificate", "token"])
def test_proxy_stops_immediately_while_file_system_hangs(which: str, stage: Stage) -> None:
    named = FILES[which]
    path = stage.file(named.name)
    path.with_name(path.name + ".hangs").touch()
    path.write_bytes(path.read_bytes() + b"\n")

    named.trigger(stage)
    if named.logged is not None:
        stage.proxy.wait_for_line(named.logged)

    stage.stops_at_once()
