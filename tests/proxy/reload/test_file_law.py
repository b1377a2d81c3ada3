"""Every file that the configuration names follows one rule.

While it is missing or unreadable, its last content is used and a condition names it. The condition ends when the file
is back.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from sluicegate.config.disk import kept_files
from sluicegate.config.model import Config
from sluicegate.config.tls import ListenTls, ServerTls
from sluicegate.proxy.network.tls.contexts import (
    BadTlsFiles,
    RequestedNames,
    context_for_brokers,
    context_for_clients,
    context_for_server,
)
from sluicegate.proxy.reload import reloader as reloader_module
from sluicegate.proxy.reload.config_check import flaws_in
from sluicegate.proxy.reload.file_watch import FileWatch
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import ActiveCondition
from tests.broker.certificates import Authority
from tests.config.test_relative_names import KEYS
from tests.oracle.kafka_java import ROOT
from tests.proxy.reload.test_reloader import Stage

_HEAD = "upstream: {bootstrap: ['127.0.0.1:1']}\nlisten: {bootstrap: '127.0.0.1:2'}\n"
_ASYNCAPI = """asyncapi: 3.0.0
info: {title: Orders, version: 1.0.0}
servers: {live: {host: "kafka:9092", protocol: kafka}}
channels: {orders: {address: orders, messages: {order: {payload: {$ref: "./order.json"}}}}}
"""
_READERS = {
    "config/contracts/referenced_files.py": "policy_file_missing, as the contract that refers to the file",
    "config/disk/kept_files.py": "the law",
    "config/files/yaml_source.py": "configuration_rejected, configuration_missing and policy_file_missing",
    "config/files/source.py": "whether the configuration has changed",
    "proxy/bootstrap/client_settings.py": "a command that ends",
    "proxy/registry/glue_folder.py": "schemas that were read stay in the registry's cache",
    "proxy/registry/schema_compiler.py": "a file of our own",
    "proxy/registry/schema_files.py": "the law for policies: what is in force stays until a reload",
    "proxy/state/snapshot_file.py": "read once, at the start, and written by the proxy itself",
}


def write_files(folder: Path, key: str) -> Path:
    """Write a certificate `c`, its key `k`, and a file `F` that suits the configuration key; return `F`."""
    authority = Authority(folder)
    own = authority.sign("own")
    (folder / "c").write_bytes(own.chain.read_bytes())
    (folder / "k").write_bytes(own.key.read_bytes())
    named = folder / "F"
    match key.rpartition(".")[2]:
        case "folder":
            named.mkdir()
        case "certificate_file":
            named.write_bytes(own.chain.read_bytes())
        case "ca_file" | "client_ca_file":
            named.write_bytes(authority.file.read_bytes())
        case "key_file" if ".sensitive." not in key:
            named.write_bytes(own.key.read_bytes())
        case "file":
            named.write_text(json.dumps("string" if ".sensitive." in key else {}))
        case "headers_file":
            named.write_text("tenant=a")
        case _:
            named.write_text("0123456789abcdef")
    return named


def remove_file(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))


def make_unreadable(file: Path) -> None:
    """Replace the file by a folder, or the folder by a file; permissions would not stop root from reading."""
    is_folder = file.is_dir()
    remove_file(file)
    if is_folder:
        file.write_text("a file")
    else:
        file.mkdir()


def restore_file(file: Path) -> None:
    if file.is_dir():
        file.rmdir()
    file.unlink(missing_ok=True)
    file.with_name("elsewhere").rename(file)


def use_files(config: Config) -> None:
    """Use the files as a starting worker does. Raises the error that would end the worker."""
    listen, upstream, otel = config.listen, config.upstream, config.otel
    if listen.tls is not None:
        context_for_clients(listen.tls, RequestedNames())
    if upstream.tls is not None:
        context_for_brokers(upstream.tls)
    servers: list[tuple[str, ServerTls]] = []
    secrets = [] if config.admin.web_ui_token is None else [config.admin.web_ui_token]
    if upstream.sasl is not None:
        secrets += upstream.sasl.secrets
        if upstream.sasl.oauth is not None and upstream.sasl.oauth.tls is not None:
            servers.append(("upstream.sasl.oauth.tls", upstream.sasl.oauth.tls))
    for name, registry in config.registries.items():
        servers += registry.tls_sections(name)
        secrets += registry.secrets(name)
    if otel is not None:
        secrets.append(otel.current_headers)
        servers += [] if otel.tls is None else [("otel.tls", otel.tls)]
    for section, tls in servers:
        context_for_server(section, tls)
    for secret in secrets:
        secret.get()


class WatchedConfiguration:
    """A reloader and a watch of the files of one configuration, as in a running proxy."""

    def __init__(self, path: Path) -> None:
        self.stage = Stage(path)
        assert [str(flaw) for flaw in flaws_in(self.config) if flaw.is_error] == []
        self.stage.reloader._check(self.stage.in_force[0])
        self.stage.file.watch(self.stage.in_force[0].source.schemas.values())
        self.files = FileWatch(lambda: self.config, self.stage.status)

    @property
    def config(self) -> Config:
        return self.stage.in_force[-1].config

    async def find_condition(self, file: Path) -> ActiveCondition | None:
        """Check the files once; return the condition that names the file."""
        await self.files.check_files()
        active = [each for each in self.stage.status.active() if each.condition is not Condition.STARTING]
        assert all(str(file) in each.detail for each in active)
        return active[0] if active else None

    async def wait_for_condition(self, file: Path, is_found: bool) -> ActiveCondition | None:
        """Check the files until a condition names the file, or until none does; the reloader checks policies by
        itself."""
        async with asyncio.timeout(60):
            while ((found := await self.find_condition(file)) is not None) != is_found:  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0.02)
        return found


@pytest.fixture
async def watch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[Callable[[str], WatchedConfiguration]]:
    monkeypatch.setattr(reloader_module, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(kept_files, "_contents", {})
    tasks: list[asyncio.Task[None]] = []

    def watched_configuration(text: str) -> WatchedConfiguration:
        (tmp_path / "c.yaml").write_text(text)
        watched = WatchedConfiguration(tmp_path / "c.yaml")
        tasks.append(asyncio.create_task(watched.stage.reloader.run()))
        return watched

    yield watched_configuration
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("lose", [remove_file, make_unreadable])
@pytest.mark.parametrize("key", KEYS)
async def test_missing_file_keeps_last_content_and_raises_condition_until_restored(
    key: str, lose: Callable[[Path], None], watch: Callable[[str], WatchedConfiguration], tmp_path: Path
) -> None:
    file = write_files(tmp_path, key)
    section = KEYS[key].partition(":")[0]
    head = "".join(line + "\n" for line in _HEAD.splitlines() if not line.startswith(f"{section}:"))
    watched = watch(head + KEYS[key])
    assert await watched.find_condition(file) is None

    lose(file)

    begun = await watched.wait_for_condition(file, is_found=True)
    assert begun is not None
    assert begun.condition in (Condition.FILE_UNUSABLE, Condition.POLICY_FILE_MISSING)
    use_files(watched.config)
    assert (await watched.stage.reloader.reload(accepts_removed=False)).problems == []
    again = await watched.find_condition(file)
    assert again is not None
    assert again.since_ms == begun.since_ms

    restore_file(file)

    assert await watched.wait_for_condition(file, is_found=False) is None


@pytest.mark.parametrize("lose", [remove_file, make_unreadable])
async def test_missing_file_referenced_by_asyncapi_document_keeps_last_content(
    lose: Callable[[Path], None], watch: Callable[[str], WatchedConfiguration], tmp_path: Path
) -> None:
    file = tmp_path / "order.json"
    file.write_text('{"type": "object", "required": ["id"]}')
    (tmp_path / "orders.yaml").write_text(_ASYNCAPI)
    watched = watch(f"{_HEAD}contracts: orders.yaml\n")
    in_force = watched.config.topics
    assert in_force
    assert await watched.find_condition(file) is None

    lose(file)

    begun = await watched.wait_for_condition(file, is_found=True)
    assert begun is not None
    assert begun.condition is Condition.POLICY_FILE_MISSING
    assert (await watched.stage.reloader.reload(accepts_removed=False)).problems == []
    assert watched.config.topics == in_force

    restore_file(file)

    assert await watched.wait_for_condition(file, is_found=False) is None


async def test_changed_file_referenced_by_asyncapi_document_takes_effect(
    watch: Callable[[str], WatchedConfiguration], tmp_path: Path
) -> None:
    file = tmp_path / "order.json"
    file.write_text('{"type": "object", "required": ["id"]}')
    (tmp_path / "orders.yaml").write_text(_ASYNCAPI)
    watched = watch(f"{_HEAD}contracts: orders.yaml\n")
    before = watched.config.topics

    file.write_text('{"type": "object", "required": ["amount"]}')

    async with asyncio.timeout(60):
        while watched.config.topics == before:  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0.02)
    assert "amount" in str(watched.config.topics)


async def test_mismatched_key_file_raises_condition_and_prevents_restart(
    watch: Callable[[str], WatchedConfiguration], tmp_path: Path
) -> None:
    file = write_files(tmp_path, "listen.tls.key_file")
    watched = watch(f"{_HEAD.splitlines()[0]}\n{KEYS['listen.tls.key_file']}")
    authority = Authority(tmp_path, "other")

    file.write_bytes(authority.sign("other").key.read_bytes())

    begun = await watched.find_condition(file)
    assert begun is not None
    assert "the key does not match" in begun.detail
    with pytest.raises(BadTlsFiles):
        use_files(watched.config)


def test_tls_context_reloads_restored_files_with_new_content(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kept_files, "_contents", {})
    authority = Authority(tmp_path)
    first, second = authority.sign("first"), authority.sign("second")
    config = ListenTls(**first.files)
    running = context_for_clients(config, RequestedNames())
    for file in (first.chain, first.key):
        file.unlink()
    restarted = context_for_clients(config, RequestedNames())
    before = [running.current(), restarted.current()]
    running.follow()
    restarted.follow()
    assert [running.current(), restarted.current()] == before

    first.chain.write_bytes(second.chain.read_bytes())
    first.key.write_bytes(second.key.read_bytes())

    for context, old in zip((running, restarted), before, strict=True):
        context.follow()
        assert context.current() is not old


def test_only_listed_modules_read_files_directly() -> None:
    sources = {file: file.read_text() for part in ("config", "proxy") for file in (ROOT / part).rglob("*.py")}
    readers = {
        str(file.relative_to(ROOT))
        for file, text in sources.items()
        if re.search(r"regular_file import [^\n]*\bread_(file|now)\b", text)
    }

    assert readers == set(_READERS)
