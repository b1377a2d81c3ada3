"""What `sluicegate doctor` says of files, descriptors, names and ports, without a cluster."""

import json
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from tests.broker.certificates import Authority
from tests.broker.ports import free_ports
from tests.proxy.cli.test_commands import sluicegate


def examined(folder: Path, **sections: Any) -> tuple[int, dict[str, tuple[str, str, str]]]:
    """The exit code, and by what each finding is about: its level, what was found and the advice."""
    first = free_ports(4)
    config = {
        "upstream": {"bootstrap": [f"127.0.0.1:{first}"], "connect_timeout_seconds": 5},
        "listen": {"bootstrap": f"127.0.0.1:{first + 1}"},
        **sections,
    }
    file = folder / "doctor.yaml"
    file.write_text(yaml.safe_dump(config))
    done = sluicegate("doctor", "--config", str(file), "--json")
    told = json.loads(done.stdout)
    assert told["exit_code"] == done.returncode
    return done.returncode, {one["about"]: (one["level"], one["found"], one["advice"]) for one in told["findings"]}


def test_a_cluster_that_is_down_ends_with_2_and_says_what_was_not_seen(tmp_path: Path) -> None:
    code, found = examined(tmp_path)

    (broker,) = [about for about in found if about.startswith("broker at")]
    assert code == 2
    assert found[broker][:2] == ("mend", "Connection refused")
    assert "client listener" in found[broker][2]
    assert {found[about][0] for about in ("clock", "permissions", "topic limits")} == {"not seen"}


def test_a_file_that_cannot_be_read_ends_with_2(tmp_path: Path) -> None:
    done = sluicegate("doctor", "--config", str(tmp_path / "none.yaml"))

    assert done.returncode == 2
    assert "No such file" in done.stderr


def test_what_this_machine_lacks_is_told_with_what_to_do(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    expired = authority.sign("old", expires=datetime.now(UTC) - timedelta(days=1))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        _, found = examined(
            tmp_path,
            upstream={"bootstrap": ["nowhere.invalid:9092"], "connect_timeout_seconds": 5},
            listen={"bootstrap": f"127.0.0.1:{port}", "tls": expired.files},
            limits={"max_connections": 900_000_000},
        )

    assert found["listen.tls.certificate_file"][0] == "mend"
    assert "expired on" in found["listen.tls.certificate_file"][1]
    assert found["descriptors"][0] == "mend"
    assert "limits.max_connections is 900000000" in found["descriptors"][1]
    assert found["upstream.bootstrap"][:2] == ("mend", "nowhere.invalid leads nowhere from this machine")
    assert found["listen.bootstrap"][:2] == ("mend", f"cannot listen on 127.0.0.1:{port}: Address already in use")
    assert "ss -ltnp" in found["listen.bootstrap"][2]


def test_lines_for_people_say_the_same_and_end_with_a_verdict(tmp_path: Path) -> None:
    examined(tmp_path)

    lines = sluicegate("doctor", "--config", str(tmp_path / "doctor.yaml")).stdout.splitlines()

    assert any(line.startswith("ok        descriptors: ") for line in lines)
    assert any(line.startswith("          -> ") for line in lines)
    assert lines[-1].endswith(": no broker answered, so most could not be looked at")
