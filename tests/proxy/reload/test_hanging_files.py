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


class ProxyWithFiles:
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

    def append_comment_to_configuration(self) -> None:
        main = self.file("sluicegate.yaml")
        main.write_text(main.read_text() + "# another\n")

    def assert_admin_responds_immediately(self) -> None:
        """Check that the admin endpoint answers every page immediately."""
        for path in ("/livez", "/metrics"):
            began_at = time.monotonic()
            status, text = self.proxy.get(path)
            assert status == 200, text
            assert time.monotonic() - began_at < _AT_ONCE_SECONDS

    def assert_stops_immediately(self) -> None:
        assert self.proxy.process is not None
        began_at = time.monotonic()
        self.proxy.terminate()
        assert self.proxy.process.wait(60) == 0
        assert time.monotonic() - began_at < _AT_ONCE_SECONDS


@pytest.fixture
def proxy_with_files(tmp_path: Path) -> Iterator[ProxyWithFiles]:
    made = ProxyWithFiles(tmp_path)
    made.proxy.start(ready=False)
    yield made
    made.proxy.stop()


def rely_on_periodic_file_check(_stage: ProxyWithFiles) -> None:
    """Do nothing: the proxy checks the file every second."""


def request_with_token(proxy_with_files: ProxyWithFiles) -> None:
    proxy_with_files.proxy.get("/api/live")


@dataclass(frozen=True, slots=True)
class HangingFileCase:
    """A file, and what makes the proxy read it. `logged` is the log line while the file system hangs, None without one;
    none; `kept` is the one while it is a FIFO.
    """

    name: str
    logged: str | None
    kept: str
    trigger: Callable[[ProxyWithFiles], None] = rely_on_periodic_file_check


_RELOAD, _TLS = "configuration rejected", "changed certificates rejected"
_UNUSABLE = '"condition": "file_unusable"'
_NO_POLICY_FILE = "policy files missing"
FILES = {
    "configuration": HangingFileCase("sluicegate.yaml", _RELOAD, _RELOAD),
    "topics": HangingFileCase("teams/a.yaml", _RELOAD, _RELOAD),
    "schema": HangingFileCase("schema.json", _RELOAD, _NO_POLICY_FILE, ProxyWithFiles.append_comment_to_configuration),
    "certificate": HangingFileCase("own.crt", _TLS, _UNUSABLE),
    "key": HangingFileCase("own.key", _TLS, _UNUSABLE),
    "trusted": HangingFileCase("ca.pem", _TLS, _UNUSABLE),
    "own certificate": HangingFileCase("ours.crt", _TLS, _UNUSABLE),
    "token": HangingFileCase("token", None, _UNUSABLE, request_with_token),
}
_SHORT = ("configuration", "own certificate", "token")  # one for each way of reading: a reload, TLS, a request


@pytest.mark.parametrize(
    "which", [pytest.param(which, marks=() if which in _SHORT else pytest.mark.long) for which in FILES]
)
def test_fifo_in_place_of_file_does_not_block_proxy(which: str, proxy_with_files: ProxyWithFiles) -> None:
    named = FILES[which]
    path = proxy_with_files.file(named.name)
    content = path.read_bytes()
    path.unlink()
    os.mkfifo(path)

    named.trigger(proxy_with_files)

    line = proxy_with_files.proxy.wait_for_line(named.kept)
    assert str(path) in line
    assert named.kept == _NO_POLICY_FILE or "expected a regular file, found a FIFO" in line
    proxy_with_files.assert_admin_responds_immediately()
    path.unlink()
    path.write_bytes(content)
    proxy_with_files.append_comment_to_configuration()
    proxy_with_files.proxy.wait_for_line("configuration reloaded")
    proxy_with_files.assert_admin_responds_immediately()
    proxy_with_files.assert_stops_immediately()


@pytest.mark.long
@pytest.mark.parametrize("which", FILES)
def test_hanging_file_system_does_not_block_proxy_and_file_is_read_later(
    which: str, proxy_with_files: ProxyWithFiles
) -> None:
    named = FILES[which]
    path = proxy_with_files.file(named.name)
    hangs = path.with_name(path.name + ".hangs")
    hangs.touch()
    path.write_bytes(path.read_bytes() + b"\n")

    named.trigger(proxy_with_files)

    if named.logged is not None:
        line = proxy_with_files.proxy.wait_for_line(named.logged)
        assert str(path) in line
        assert "its file system has not responded" in line
    proxy_with_files.assert_admin_responds_immediately()
    hangs.unlink()
    proxy_with_files.append_comment_to_configuration()
    proxy_with_files.proxy.wait_for_line("configuration reloaded")
    if named.logged == _TLS:
        proxy_with_files.proxy.wait_for_line("certificates reloaded")
    eventually(lambda: "rejected" not in proxy_with_files.proxy.get("/readyz")[1], what="/readyz without the file")
    proxy_with_files.assert_admin_responds_immediately()
    proxy_with_files.assert_stops_immediately()


@pytest.mark.long
@pytest.mark.parametrize("which", ["configuration", "certificate", "token"])
def test_proxy_stops_immediately_while_file_system_hangs(which: str, proxy_with_files: ProxyWithFiles) -> None:
    named = FILES[which]
    path = proxy_with_files.file(named.name)
    path.with_name(path.name + ".hangs").touch()
    path.write_bytes(path.read_bytes() + b"\n")

    named.trigger(proxy_with_files)
    if named.logged is not None:
        proxy_with_files.proxy.wait_for_line(named.logged)

    proxy_with_files.assert_stops_immediately()
