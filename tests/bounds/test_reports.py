"""Clients cannot silence log, events, metrics or the admin endpoint, and a blocked report does not delay clients."""

import base64
import json
import os
import socket
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.bounds import hostile_batches as hostile
from tests.bounds.frames import compact_string, int32, short_string, sized_produce_request, sized_request
from tests.bounds.resident import status_bytes
from tests.bounds.stage import HOST, Stage, StageMaker
from tests.broker.eventually import eventually
from tests.wire.batches import NONE
from tests.wire.raw_client import RawClient


def rejected_request(topic: bytes = b"attacked", client_id: bytes = b"hostile") -> bytes:
    return sized_produce_request(9, {topic: [(0, hostile.bad_records(NONE, 1))]}, client_id=client_id)


def written_or_lost_events(stage: Stage) -> float:
    """Return the number of events in the file and of events counted as lost."""
    lost = (stage.proxy.metric(f"sluicegate_violation_events_{how}_total") for how in ("dropped", "failed"))
    return sum(lost, len(stage.proxy.violations()))


def count_responses(stage: Stage, *messages: bytes, timeout: float = 5) -> int:
    """Send each request on its own connection and return the number of responses."""
    count = 0
    for message in messages:
        with RawClient(f"{HOST}:{stage.port(1)}", timeout) as client:
            client.socket.sendall(message)
            count += isinstance(client.receive(timeout), bytes)
    return count


def test_a_full_disk_of_the_log_stops_no_client(stage_of: StageMaker) -> None:
    stage = stage_of(shell='exec "$0" "$@" 2>/dev/full')

    assert count_responses(stage, *(rejected_request(b"t%d" % i, b"c%d" % i) for i in range(60))) == 60

    stage.wait_until_live()
    eventually(lambda: stage.proxy.metric("sluicegate_log_lines_dropped_total") > 0, 10, "dropped lines in the metrics")
    eventually(lambda: len(stage.proxy.violations()) == 60, 10, "an event for each rejection")


def test_log_and_events_continue_with_whole_lines_after_a_limit_of_file_size(stage_of: StageMaker) -> None:
    stage = stage_of(shell='exec prlimit --fsize=20000:unlimited "$0" "$@"')

    assert count_responses(stage, *(rejected_request(b"t%d" % i, b"c%d" % i) for i in range(100))) == 100
    subprocess.run(["prlimit", "--pid", str(stage.pid), "--fsize=unlimited"], check=True)
    assert count_responses(stage, rejected_request(b"afterwards")) == 1

    eventually(lambda: stage.proxy.violations_of("afterwards"), 10, "new events in the file")
    assert stage.faults_in_files(0) == []
    eventually(lambda: written_or_lost_events(stage) == 101, 10, "each event is in the file or counted as lost")


def test_events_on_a_full_disk_delay_no_client(stage_of: StageMaker) -> None:
    stage = stage_of(config={"violations": {"file": "/dev/full"}})

    assert count_responses(stage, *(rejected_request(b"t%d" % i) for i in range(60))) == 60

    stage.wait_until_live()


def test_an_unread_pipe_as_log_delays_no_client(stage_of: StageMaker, tmp_path: Path) -> None:
    pipe = tmp_path / "unread"
    os.mkfifo(pipe)
    held_open = os.open(pipe, os.O_RDWR)
    try:
        stage = stage_of(honest=True, shell=f'exec "$0" "$@" 2>{pipe}')
        assert stage.honest is not None
        stage.honest.ask("start")
        names = [b"n%d-" % i + b"x" * 200 for i in range(600)]

        assert count_responses(stage, *(rejected_request(name, name) for name in names)) == len(names)

        assert stage.longest_wait() < 1
        stage.wait_until_live()
    finally:
        os.close(held_open)


@pytest.mark.long
def test_the_admin_endpoint_responds_beside_1500_silent_connections(stage_of: StageMaker) -> None:
    stage = stage_of(honest=True)
    assert stage.honest is not None
    stage.honest.ask("start")
    host, port = stage.proxy.config["admin"]["listen"].rsplit(":", 1)
    before = status_threads(stage.pid)
    silent = []
    for _ in range(1500):
        try:
            silent.append(socket.create_connection((host, int(port)), 1))
        except OSError:
            break

    begun = time.monotonic()
    eventually(lambda: stage.proxy.get("/livez")[0] == 200, 15, "livez beside silent connections")
    assert time.monotonic() - begun < 15
    assert status_threads(stage.pid) - before < 50
    assert stage.longest_wait() < 1
    eventually(lambda: all(map(is_closed, silent)), 40, "silent connections are closed")
    for connection in silent:
        connection.close()


def status_threads(pid: int) -> int:
    return status_bytes(pid, "Threads") // 1024


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def oauth_login(subject: str) -> bytes:
    claims = base64.urlsafe_b64encode(json.dumps({"sub": subject}).encode()).rstrip(b"=")
    token = b"n,,\x01auth=Bearer x." + claims + b".y\x01\x01"
    return sized_request(17, 1, short_string(b"OAUTHBEARER")) + sized_request(36, 2, compact_string(token) + b"\0")


ODD_NAMES = [
    "\ud800",
    "a\ud800b",
    "\x1b[31mred\x1b[0m",
    "\x9b31m",
    "a\u2028b\u2029c",
    "\x00",
    '"}{\\',
    "\n{}\n",
    "\u202e",
]


def test_control_characters_in_names_are_escaped_in_events_and_log(stage_of: StageMaker) -> None:
    stage = stage_of()
    with ExitStack() as stack:
        for number, name in enumerate(ODD_NAMES):
            client = stack.enter_context(RawClient(f"{HOST}:{stage.port(1)}", 5))
            client.socket.sendall(oauth_login(name))
            assert isinstance(client.receive(5), bytes)
            assert isinstance(client.receive(5), bytes)
            client.socket.sendall(rejected_request(b"odd-%d" % number, name.encode("utf-8", "surrogatepass")))
            assert isinstance(client.receive(5), bytes)
    count_responses(stage, rejected_request(b"afterwards"))

    eventually(lambda: stage.proxy.violations_of("afterwards"), 10, "an event after the odd names")
    events = Path(stage.proxy.config["violations"]["file"]).read_bytes()
    assert len(events.decode().splitlines()) == len(ODD_NAMES) + 1
    assert not any(bad in events.decode() for bad in ("\x1b", "\x9b", "\u2028", "\u202e"))
    assert stage.faults_in_files(0) == []


def test_a_pretty_log_escapes_control_characters_from_clients(stage_of: StageMaker) -> None:
    stage = stage_of(config={"log": {"format": "pretty"}})

    count_responses(stage, *(rejected_request(b"odd", name.encode("utf-8", "surrogatepass")) for name in ODD_NAMES))
    count_responses(
        stage, sized_request(18, 3, compact_string(b"\x1b]0;x\x07") + compact_string(b"\xc2\x9b1m") + b"\0")
    )

    eventually(lambda: "odd" in stage.proxy.log(), 10)
    text = stage.proxy.log()
    assert "\x1b[31mred" not in text
    assert "\x9b" not in text
    assert "\u202e" not in text


def test_nonexistent_topic_names_get_no_metric_labels(stage_of: StageMaker) -> None:
    stage = stage_of()
    count_responses(stage, *(rejected_request(b"invented-%d" % i) for i in range(600)))

    with RawClient(f"{HOST}:{stage.port(1)}", 5) as client:
        client.metadata("known")
        client.socket.sendall(rejected_request(b"known"))
        assert isinstance(client.receive(5), bytes)

    _, text = stage.proxy.get("/metrics")
    assert 'topic="known"' in text
    assert text.count("invented-") == 0


def test_a_client_has_no_principal_before_the_broker_accepts_its_login(stage_of: StageMaker) -> None:
    stage = stage_of(broker="rejects logins")
    token = b"\0alice\0wrong"
    raw = sized_request(17, 0, short_string(b"PLAIN")) + int32(len(token)) + token
    framed = sized_request(17, 1, short_string(b"PLAIN")) + sized_request(36, 1, int32(len(token)) + token)

    for number, login in enumerate((raw, framed)):
        with RawClient(f"{HOST}:{stage.port(1)}", 5) as client:
            client.socket.sendall(login + rejected_request(b"claimed-%d" % number))
            while isinstance(client.receive(1), bytes):
                continue
    count_responses(stage, rejected_request(b"afterwards"))

    eventually(lambda: stage.proxy.violations_of("afterwards"), 10)
    assert not [event for event in stage.proxy.violations() if event.get("principal")]


def test_the_file_of_events_is_rotated_when_it_is_large(stage_of: StageMaker) -> None:
    stage = stage_of(config={"violations": {"max_file_bytes": 20_000}})

    count_responses(stage, *(rejected_request(b"t%d" % i) for i in range(150)))

    file = Path(stage.proxy.config["violations"]["file"])
    eventually(lambda: file.with_name(file.name + ".1").exists(), 10, "the rotated file")
    eventually(lambda: "t149" in file.read_text(), 10)
    assert file.stat().st_size < 25_000
    assert stage.faults_in_files(0) == []
