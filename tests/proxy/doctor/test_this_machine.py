"""`sluicegate doctor` works without a cluster: it checks files, descriptors, names, ports, and a running proxy."""

import http.server
import json
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.broker.certificates import Authority
from tests.broker.ports import free_ports
from tests.broker.proxy_process import ProxyProcess
from tests.proxy.cli.test_commands import sluicegate, sluicegate_process


def examine_machine(folder: Path, **sections: Any) -> tuple[int, dict[str, tuple[str, str, str]]]:
    """Return the exit code, and the level, text and advice of each result by its subject."""
    first = free_ports(4)
    config = {
        "upstream": {"bootstrap": [f"127.0.0.1:{first}"], "connect_timeout_seconds": 5},
        "listen": {"bootstrap": f"127.0.0.1:{first + 1}"},
        **sections,
    }
    file = folder / "doctor.yaml"
    file.write_text(yaml.safe_dump(config))
    done = sluicegate("doctor", "--config", str(file), "--json")
    report = json.loads(done.stdout)
    assert report["exit_code"] == done.returncode
    return done.returncode, {one["about"]: (one["level"], one["found"], one["advice"]) for one in report["findings"]}


def test_a_cluster_that_is_down_ends_with_2_and_lists_what_was_not_checked(tmp_path: Path) -> None:
    code, found = examine_machine(tmp_path)

    (broker,) = [about for about in found if about.startswith("broker at")]
    assert code == 2
    assert found[broker][:2] == ("failure", "Connection refused")
    assert found[broker][2].startswith("start the broker")
    assert {found[about][0] for about in ("clock", "permissions", "topic limits")} == {"not checked"}


def test_a_file_that_cannot_be_read_ends_with_2(tmp_path: Path) -> None:
    done = sluicegate("doctor", "--config", str(tmp_path / "none.yaml"))

    assert done.returncode == 2
    assert "No such file" in done.stderr


@pytest.mark.long
def test_local_check_failure_includes_remedy(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    expired = authority.sign("old", expires=datetime.now(UTC) - timedelta(days=1))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        _, found = examine_machine(
            tmp_path,
            upstream={"bootstrap": ["nowhere.invalid:9092"], "connect_timeout_seconds": 5},
            listen={"bootstrap": f"127.0.0.1:{port}", "tls": expired.files},
            limits={"max_connections": 900_000_000},
        )

    assert found["listen.tls.certificate_file"][0] == "failure"
    assert "expired on" in found["listen.tls.certificate_file"][1]
    assert found["descriptors"][0] == "failure"
    assert "limits.max_connections is 900000000" in found["descriptors"][1]
    assert found["upstream.bootstrap"][:2] == ("failure", "this machine does not resolve nowhere.invalid")
    assert found["listen.bootstrap"][:2] == ("failure", f"cannot listen on 127.0.0.1:{port}: Address already in use")
    assert "ss -ltnp" in found["listen.bootstrap"][2]
    assert found["broker at nowhere.invalid:9092"] == (
        "not checked",
        "this machine does not resolve nowhere.invalid",
        "",
    )


def test_text_output_ends_with_summary(tmp_path: Path) -> None:
    examine_machine(tmp_path)

    lines = sluicegate("doctor", "--config", str(tmp_path / "doctor.yaml")).stdout.splitlines()

    assert any(line.startswith("ok           descriptors: ") for line in lines)
    assert any(line.startswith("             -> ") for line in lines)
    assert lines[-1].endswith(": no broker responded, so most checks did not run")


def test_files_and_packages_without_which_run_does_not_start_are_failures(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "v.jsonl"
    rule = {"name": "r", "value": {"schema": {"file": str(tmp_path / "none.avsc"), "format": "avro"}}}

    _, found = examine_machine(tmp_path, violations={"file": str(missing)}, defaults={"rules": [rule]})

    reason = f"{missing} cannot be written: the folder {missing.parent} does not exist"
    assert found["violations.file"][:2] == ("failure", reason)
    level, words, _ = found["defaults.rules[0]"]
    file = tmp_path / "doctor.yaml"
    assert level == "failure"
    assert words.startswith(f"{file}:")
    assert f": rule r: {tmp_path}/none.avsc cannot be read: " in words
    done, checked = sluicegate_process("run", "--config", str(file)), sluicegate("check", str(file))
    assert done.returncode == 1
    assert done.stderr == checked.stderr
    assert f"{file}:" in done.stderr


@pytest.mark.parametrize(
    "listen",
    [
        pytest.param({}, id="tls"),
        pytest.param({"client_auth": "required"}, id="mutual tls"),
        pytest.param({"broker_host": "broker-{node_id}.test"}, id="host names", marks=pytest.mark.long),
        pytest.param({"proxy_protocol": "required"}, id="proxy protocol", marks=pytest.mark.long),
    ],
)
def test_a_running_proxy_is_recognised_whatever_its_listener_requires(listen: dict[str, Any], tmp_path: Path) -> None:
    listen = dict(listen)
    authority = Authority(tmp_path)
    own = authority.sign("own", "localhost", "127.0.0.1", "*.test")
    proxy = ProxyProcess(tmp_path, f"127.0.0.1:{free_ports(1)}")
    tls = dict(own.files)
    if listen.pop("client_auth", None):
        tls |= {"client_auth": "required", "client_ca_file": str(authority.file)}
    proxy.config["listen"] |= listen | {"tls": tls}
    if "broker_host" in listen:
        proxy.config["listen"].pop("broker_port_base")
    if "proxy_protocol" in listen:
        proxy.config["listen"]["proxy_protocol_from"] = ["192.0.2.1"]
    proxy.start(ready=False)
    try:
        done = sluicegate("doctor", "--config", str(tmp_path / "sluicegate.yaml"), "--json")
        found = {one["about"]: one for one in json.loads(done.stdout)["findings"]}
    finally:
        proxy.stop()

    for key in ("listen.bootstrap", "admin.listen"):
        assert found[key]["level"] == "ok", found
        assert "in use by a running proxy of this configuration" in found[key]["found"]
    assert found["advertised address"]["level"] in ("ok", "warning")  # broker-1.test cannot be resolved


def test_a_port_with_another_certificate_is_not_the_proxys(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    other = authority.sign("other")
    context.load_cert_chain(other.chain, other.key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        listen = {"bootstrap": f"127.0.0.1:{server.server_port}", "tls": authority.sign("own").files}
        _, found = examine_machine(tmp_path, listen=listen)
    finally:
        server.shutdown()
        server.server_close()

    assert found["listen.bootstrap"][0] == "failure"
    assert found["advertised address"][0] == "failure"
    assert "presents a certificate other than listen.tls.certificate_file" in found["advertised address"][1]


def test_http_listener_on_proxy_port_is_identified(tmp_path: Path) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"127.0.0.1:{server.server_port}"
    try:
        code, found = examine_machine(tmp_path, upstream={"bootstrap": [address], "connect_timeout_seconds": 1})
    finally:
        server.shutdown()
        server.server_close()

    assert code == 2
    assert found[f"broker at {address}"][:2] == ("failure", "is an HTTP port, not a Kafka listener")


def test_failure_message_states_remedy_without_separate_advice(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    expired = authority.sign("old", expires=datetime.now(UTC) - timedelta(days=1))

    _, found = examine_machine(tmp_path, listen={"bootstrap": f"127.0.0.1:{free_ports(1)}", "tls": expired.files})

    level, message, advice = found["listen.tls.certificate_file"]
    assert level == "failure"
    assert message.endswith(": renew it")
    assert not advice
