"""The container's health check follows admin.listen, wherever it is set."""

from pathlib import Path

import pytest

from sluicegate.config.loading import ConfigError
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.admin.endpoint import AdminServer
from sluicegate.proxy.cli.health_check import admin_of, problem_at
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from tests.broker.ports import free_ports


def test_the_health_check_takes_its_address_from_the_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("upstream: {bootstrap: [nonsense]}\nadmin: {listen: '0.0.0.0:9650'}\n")
    variable = {"SLUICEGATE__ADMIN__LISTEN": "127.0.0.1:7", "SLUICEGATE__WORKERS": "nonsense"}

    assert admin_of(file, {}).listen == HostPort("0.0.0.0", 9650)
    assert admin_of(file, variable).listen == HostPort("127.0.0.1", 7)
    assert admin_of(tmp_path / "none.yaml", variable).listen == HostPort("127.0.0.1", 7)
    assert admin_of(None, {}).listen is None
    with pytest.raises(ConfigError):
        admin_of(None, {"SLUICEGATE__ADMIN__LISTEN": "nonsense"})


def test_the_health_check_distinguishes_live_stuck_and_absent_proxies() -> None:
    port = free_ports(1)
    status = Status()
    server = AdminServer(HostPort("127.0.0.1", port), list, status)
    try:
        assert problem_at(HostPort("0.0.0.0", port)) is None
        status.begin(Condition.EVENT_LOOP_STUCK, "stuck")
        assert problem_at(HostPort("127.0.0.1", port)) == f"127.0.0.1:{port}: 503 stuck"
    finally:
        server.close()
    assert problem_at(HostPort("127.0.0.1", port)) == f"127.0.0.1:{port}: Connection refused"
