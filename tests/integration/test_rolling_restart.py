"""Two proxies with one name are restarted in turn under load, and clients do not notice it."""

from pathlib import Path

import pytest

from tests.integration.two_proxies import ClientsOfTwo, replace, two_proxies

pytestmark = pytest.mark.long


def test_a_rolling_restart_loses_nothing_and_stores_nothing_twice(kafka_bootstrap: str, tmp_path: Path) -> None:
    with two_proxies(kafka_bootstrap, tmp_path) as proxies:
        for proxy in proxies:
            proxy.start()
        clients = ClientsOfTwo(kafka_bootstrap, proxies)
        with clients.writing():
            for proxy in (*proxies, *proxies):
                replace(proxy)
                clients.progress()

        clients.check_nothing_is_lost()
