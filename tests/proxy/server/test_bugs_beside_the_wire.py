"""Clients do not notice the failure of a part of the proxy that is not involved in requests."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sluicegate.protocol.errors import ErrorCode
from tests.bounds.frames import good_batch
from tests.bounds.hostile_batches import now
from tests.bounds.stage import HOST, Stage
from tests.broker.eventually import eventually
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

_BUGS = Path(__file__).with_name("bugs")


def request_to_path(path: str) -> Callable[[Stage], None]:
    def ask(stage: Stage) -> None:
        assert stage.proxy.get(path)[0] == 500

    return ask


def changes_the_file(stage: Stage) -> None:
    file = stage.folder / "sluicegate.yaml"
    file.write_text(file.read_text() + "# another\n")


def no_trigger(_stage: Stage) -> None:
    """Do nothing, because the proxy calls the method regularly."""


@dataclass(frozen=True, slots=True)
class InjectedBug:
    """`place`: the method that fails. `trigger`: causes a call of the method. `logged`: the log event of the
    failure."""

    place: str
    logged: str
    trigger: Callable[[Stage], None] = no_trigger


_PERIODIC = "a periodic task failed"
BUGS = {
    "metrics": InjectedBug(
        "sluicegate.proxy.server.server_state:ServerState.snapshot",
        "metrics cannot be shown",
        request_to_path("/metrics"),
    ),
    "page": InjectedBug(
        "sluicegate.proxy.server.server_state:ServerState.live_state",
        "web UI request failed",
        request_to_path("/api/live"),
    ),
    "reload": InjectedBug("sluicegate.proxy.server.server:Server.adopt", "configuration rejected", changes_the_file),
    "events": InjectedBug(
        "sluicegate.proxy.reporting.events.violation_writer:EventFile.append", "violation events not written"
    ),
    "an event": InjectedBug(
        "sluicegate.proxy.reporting.events.violation_writer:ViolationFile.write",
        "validation not reported",
    ),
    "the page's figures": InjectedBug("sluicegate.proxy.live.live_view:LiveView.tick", _PERIODIC),
    "sweeping": InjectedBug("sluicegate.proxy.server.observer:Observer.sweep", _PERIODIC),
    "looking at sessions": InjectedBug("sluicegate.proxy.server.open_sessions:ConnectionStats.end_round", _PERIODIC),
    "looking at the cluster": InjectedBug("sluicegate.proxy.server.cluster_watch:ClusterWatch.probe_again", _PERIODIC),
}
_SHORT = ("metrics", "reload", "an event", "sweeping")  # one case for each place that catches errors


@pytest.mark.internal_error
@pytest.mark.parametrize(
    "bug",
    [pytest.param(bug, marks=() if name in _SHORT else pytest.mark.long, id=name) for name, bug in BUGS.items()],
)
def test_errors_outside_the_protocol_do_not_affect_clients(bug: InjectedBug, tmp_path: Path) -> None:
    stage = Stage(tmp_path / "stage")
    path = os.pathsep.join(filter(None, [str(_BUGS), os.environ.get("PYTHONPATH")]))
    stage.proxy.environment = {"PYTHONPATH": path, "BUG": bug.place}
    try:
        stage.start(honest=False)
        with RawClient(f"{HOST}:{stage.port(1)}", 30) as client:
            before = [produce_code(client, good_batch(now())), produce_code(client, batch([Rec(5)]))]
            bug.trigger(stage)
            eventually(lambda: bug.logged in stage.proxy.log(), 30, "a line about the bug")

            assert "a bug" in stage.proxy.log()
            assert before == [ErrorCode.NONE, ErrorCode.INVALID_TIMESTAMP]
            assert [produce_code(client, good_batch(now())), produce_code(client, batch([Rec(5)]))] == before
        assert "connection closed" not in stage.proxy.log()
        assert stage.proxy.get("/livez") == (200, "ok\n")
    finally:
        stage.stop()


def produce_code(client: RawClient, records: bytes) -> int:
    answer = client.produce(9, [topic_data("t", (0, records))])
    assert isinstance(answer, dict), answer
    code: int = answer["responses"][0]["partition_responses"][0]["error_code"]
    return code
