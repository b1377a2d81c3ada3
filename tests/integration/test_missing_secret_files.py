"""If certificate files disappear while the proxy runs, clients can connect to every worker, and all views show it."""

import os
import signal
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.broker.certificates import Authority
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.condition_views import active_condition_details, wait_until_begun
from tests.integration.test_workers import workers_of

if TYPE_CHECKING:
    from playwright.sync_api import Page


def certificate_of(proxy: ProxyProcess) -> str:
    host, port = proxy.bootstrap.split(":")
    return ssl.get_server_certificate((host, int(port)), timeout=60)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_missing_certificate_file_stays_in_use_until_it_returns(
    kafka_bootstrap: str, workers: int, tmp_path: Path, web_ui: "Page | None"
) -> None:
    folder, elsewhere = tmp_path / "tls", tmp_path / "elsewhere"
    folder.mkdir()
    authority = Authority(folder)
    own, renewed = authority.sign("own"), authority.sign("renewed")
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, {"workers": workers})
    proxy.config["listen"]["tls"] = own.files
    proxy.start()
    try:
        shown = certificate_of(proxy)
        folder.rename(elsewhere)

        detail = wait_until_begun(proxy, "file_unusable", web_ui)
        assert f"{own.key} cannot be read: No such file or directory" in detail
        subject = 'sluicegate_condition{condition="file_unusable",subject="listen.tls.certificate_file"} 1.0'
        assert subject in proxy.get("/metrics")[1]
        if workers > 1:
            for worker in workers_of(proxy):
                os.kill(worker, signal.SIGKILL)
            eventually(lambda: proxy.metric("sluicegate_worker_restarts_total") == 2)
            eventually(lambda: proxy.metric("sluicegate_workers") == 2)
        assert {certificate_of(proxy) for _ in range(8)} == {shown}

        elsewhere.rename(folder)
        eventually(lambda: "file_unusable" not in active_condition_details(proxy), what="the end of the condition")
        own.chain.write_bytes(renewed.chain.read_bytes())
        own.key.write_bytes(renewed.key.read_bytes())
        eventually(lambda: {certificate_of(proxy) for _ in range(8)} == {renewed.chain.read_text().strip() + "\n"})
    finally:
        proxy.stop()
