"""Mistakes during the first setup cause messages that state what happened, where, and what to do."""

import asyncio
import errno
import http.server
import json
import os
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.network.listeners import CannotListen
from tests.broker.certificates import Authority
from tests.broker.ports import free_ports
from tests.broker.proxy_process import ProxyProcess
from tests.proxy.cli.test_commands import sluicegate_process


@contextmanager
def proxy_before(upstream: str, folder: Path, **sections: Any) -> Iterator[ProxyProcess]:
    """Yield a proxy that is alive, whether or not it is ready."""
    proxy = ProxyProcess(folder, upstream, {"log": {"format": "json"}, **sections})
    try:
        yield proxy.start(ready=False)
    finally:
        proxy.stop()


def log_line(proxy: ProxyProcess, text: str) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(proxy.wait_for_line(text))
    return line


def test_an_unreachable_cluster_is_logged_with_advice(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)}"

    with proxy_before(address, tmp_path) as proxy:
        line = log_line(proxy, "no broker reachable")
        status, words = proxy.get("/readyz")

    assert line["reason"].startswith(f"{address}: ")
    listening = [json.loads(each) for each in proxy.log().splitlines()[:3] if '"listening"' in each]
    assert f"{proxy.admin}/" in [each.get("web_ui") for each in listening]
    assert "check that the brokers are up" in line["advice"]
    assert status == 503
    assert f"no upstream broker responds: {address}: " in words


def test_an_http_server_as_upstream_is_logged_with_advice(tmp_path: Path) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        with proxy_before(f"127.0.0.1:{server.server_port}", tmp_path) as proxy:
            line = log_line(proxy, "no broker reachable")
    finally:
        server.shutdown()
        server.server_close()

    reasons = (
        "is an HTTP port, not a Kafka listener",
        "responds, but not as a Kafka broker",
        "closes plaintext connections",
    )
    assert any(reason in line["reason"] for reason in reasons)
    assert line["advice"]


def test_listening_on_a_foreign_address_is_an_error_with_advice() -> None:
    done = sluicegate_process("run", "--upstream", "127.0.0.1:1", "--listen", f"192.0.2.1:{free_ports(1)}")  # RFC 5737

    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "sluicegate: cannot listen on 192.0.2.1:" in last
    assert "no interface of this machine has this address" in last


def test_listening_on_a_privileged_port_is_an_error_with_advice() -> None:
    rejected = CannotListen(HostPort("0.0.0.0", 443), OSError(errno.EACCES, os.strerror(errno.EACCES)))

    assert str(rejected) == "0.0.0.0:443: Permission denied"
    assert "CAP_NET_BIND_SERVICE" in rejected.advice


async def test_a_tls_handshake_on_a_plaintext_port_is_logged_with_advice(tmp_path: Path) -> None:
    with proxy_before("127.0.0.1:1", tmp_path) as proxy:
        host, _, port = proxy.bootstrap.partition(":")
        with pytest.raises((ssl.SSLError, OSError)):
            await asyncio.open_connection(host, int(port), ssl=ssl.create_default_context())
        line = log_line(proxy, "a TLS handshake on a plain port")

    assert "set security.protocol=PLAINTEXT on the client, or use a TLS listener" in json.dumps(line)


async def test_a_plaintext_client_on_a_tls_port_is_logged_with_advice(tmp_path: Path) -> None:
    own = Authority(tmp_path).sign("proxy").files
    first = free_ports(4)
    listen = {"bootstrap": f"127.0.0.1:{first}", "broker_port_base": first + 1, "tls": own}
    with proxy_before("127.0.0.1:1", tmp_path, listen=listen) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", first)
        writer.write(bytes.fromhex("0000000a 0012 0000 00000001 0000"))  # ApiVersions v0
        answer = await reader.read()
        writer.close()
        line = log_line(proxy, "client TLS handshake failed")

    assert answer[:1] in (b"", b"\x15")  # closed, perhaps with a TLS alert
    assert "security.protocol is wrong" in json.dumps(line)
