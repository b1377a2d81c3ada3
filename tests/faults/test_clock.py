"""The proxy's clock jumps by an hour, forward or back. Verdicts use the new time at once, and deadlines do not."""

import json
from pathlib import Path

from tests.broker.eventually import eventually
from tests.faults.setting import FaultSetting, RelayedCluster
from tests.integration.test_produce import leader_of, now_ms
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

HOUR_MS = 3_600_000
INVALID_TIMESTAMP = 32
# The proxy allows two hours in the past and two hours in the future.
BEHIND, JUST_BEHIND, NOW, JUST_AHEAD, AHEAD = (int(hours * HOUR_MS) for hours in (-2.1, -1.9, 0, 1.9, 2.1))


def error_code_of_record(client: RawClient, topic: str, time_ms: int) -> int:
    response = client.produce(9, [topic_data(topic, (0, batch([Rec(time_ms)])))])
    assert isinstance(response, dict), response
    code: int = response["responses"][0]["partition_responses"][0]["error_code"]
    return code


def test_verdicts_follow_a_clock_that_jumps_and_deadlines_do_not(cluster: RelayedCluster, tmp_path: Path) -> None:
    setting = FaultSetting(cluster, tmp_path, workers=1, seed=0)
    with setting.running():
        topic = setting.topic()
        with RawClient(leader_of(setting.proxy, topic), 60) as client:
            for jump in (0, HOUR_MS, -HOUR_MS, 0):
                setting.set_clock(jump)
                by_its_clock = now_ms() + jump
                eventually(lambda at=by_its_clock: error_code_of_record(client, topic, at + JUST_BEHIND) == 0)
                eventually(lambda at=by_its_clock: error_code_of_record(client, topic, at + JUST_AHEAD) == 0)
                for distance, code in ((BEHIND, INVALID_TIMESTAMP), (NOW, 0), (AHEAD, INVALID_TIMESTAMP)):
                    assert error_code_of_record(client, topic, by_its_clock + distance) == code, (jump, distance)

            assert setting.proxy.metric("sluicegate_open_connections") == 1, "deadlines must not use this clock"
            assert setting.proxy.get("/livez")[0] == 200
            assert json.loads(setting.proxy.get("/api/live")[1])["connections"]["count"] == 1
    assert "Traceback" not in setting.proxy.log()
