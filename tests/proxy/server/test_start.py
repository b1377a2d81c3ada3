"""Errors that prevent a start name the fix."""

import errno
from pathlib import Path

import pytest
import uvloop

import sluicegate.proxy.server.startup
from sluicegate.config.loading import config_of
from sluicegate.config.model import Config
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.cluster import METADATA_RESPONSE
from sluicegate.proxy.doctor.finding import Level
from sluicegate.proxy.doctor.ports import findings
from sluicegate.proxy.server.server import Server
from sluicegate.proxy.server.startup import CannotStart
from tests.broker.certificates import Authority
from tests.broker.ports import free_ports
from tests.proxy.scripted_broker import ScriptedBroker


async def test_a_read_only_place_for_violations_is_named_with_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(sluicegate.proxy.server.startup, "ViolationFile", read_only)
    monkeypatch.chdir(tmp_path)
    config = config_of(
        {"upstream": {"bootstrap": "127.0.0.1:1"}, "listen": {"bootstrap": "127.0.0.1:0", "broker_port_base": 20000}}
        | {"violations": {"file": "violations.jsonl"}}
    )

    with pytest.raises(CannotStart) as raised:
        await Server(config).start()

    assert str(raised.value) == (
        f"violations.file {tmp_path}/violations.jsonl cannot be written: Read-only file system; give its folder a "
        "volume, or leave violations.file out"
    )


async def test_a_file_of_certificates_without_any_is_named_with_the_key(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    tls = {"certificate_file": str(empty), "key_file": str(empty)}
    config = config_of(
        {
            "upstream": {"bootstrap": "h:1"},
            "listen": {"bootstrap": "127.0.0.1:0", "broker_port_base": 20000, "tls": tls},
        }
    )

    with pytest.raises(
        CannotStart, match=rf"listen\.tls\.certificate_file: no PEM certificate in {empty}; it is empty"
    ):
        await Server(config).start()


def test_a_proxy_that_is_its_own_cluster_does_not_start() -> None:
    """Seen: 13,312 descriptors within four seconds, without any client."""
    port = free_ports(1)
    config = config_of(
        {"upstream": {"bootstrap": f"127.0.0.1:{port}"}, "listen": {"bootstrap": f"127.0.0.1:{port}"}}
        | {"admin": {"listen": None}}
    )

    with pytest.raises(CannotStart, match=r"upstream\.bootstrap leads back to this proxy itself"):
        uvloop.run(started(config))


async def started(config: Config) -> None:
    await Server(config).start()


async def test_a_broker_that_can_have_no_name_is_an_error_at_the_start_and_in_doctor(tmp_path: Path) -> None:
    """Clients would see no brokers, and nothing would say why."""
    own = Authority(tmp_path).sign("own")
    async with ScriptedBroker({}) as broker:
        node = {"node_id": 1_000_000_000, "host": broker.address.host, "port": broker.address.port, "rack": None}
        broker.answers[ApiKey.METADATA] = lambda version, _: METADATA_RESPONSE.build(
            {"brokers": [node], "topics": []}, version
        )
        listen = {"bootstrap": "127.0.0.1:0", "broker_host": "b{node_id}.test", "tls": own.files}
        config = config_of({"upstream": {"bootstrap": str(broker.address)}, "listen": listen})
        reason = "broker 1000000000 cannot have a host name: listen.broker_host serves ids up to 999999999"

        with pytest.raises(CannotStart) as raised:
            await Server(config).start()

    assert str(raised.value) == f"{reason}; give the broker a smaller node.id"
    found = list(findings(config, {1_000_000_000: HostPort("h", 1)}, running=False))
    assert [(f.level, f.found) for f in found if f.about == "listen.broker_host"] == [(Level.FAILURE, reason)]
