"""After faults under load and a recovery, acknowledged records are stored in order, and no resource leaks."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.certificates import Authority
from tests.broker.eventually import eventually
from tests.faults.conftest import SEEDS
from tests.faults.faults import DiskFull, plan_of, strike_together
from tests.faults.left import LeftoverCheck
from tests.faults.load import IdempotentLoad, LoadClient, RejectedLoad, TransactionalLoad, wait_for_progress
from tests.faults.reader import read_stored_numbers
from tests.faults.setting import FaultSetting, RelayedCluster
from tests.faults.table import OUTCOME, RunOutcome
from tests.integration.test_produce import bad_batch_now
from tests.wire.raw_client import topic_data


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_loses_no_record_and_leaks_nothing(
    seed: int, cluster: RelayedCluster, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    plan = plan_of(seed)
    if DiskFull() in plan.faults and cluster.disk.why_not is not None:
        pytest.skip(f"no separate disk for a broker on this machine: {cluster.disk.why_not}")
    outcome = RunOutcome(plan)
    authority = Authority(tmp_path) if plan.over_tls else None
    setting = FaultSetting(cluster, tmp_path, plan.workers, seed, authority)
    try:
        with setting.running():
            run_plan(setting, outcome)
        outcome.held = True
    except Exception as error:
        outcome.trouble = f"{type(error).__name__}: {error}"[:1000]
        raise
    finally:
        if outcome.held or outcome.trouble:  # otherwise the run was interrupted
            record_property(OUTCOME, outcome.as_properties())


def run_plan(setting: FaultSetting, outcome: RunOutcome) -> None:
    setting.wait_until_whole()
    good, in_transactions, bad_ones = (setting.topic() for _ in range(3))
    warm_up(setting, bad_ones)
    left = LeftoverCheck(setting.proxy)
    seed = outcome.plan.seed
    idempotent = IdempotentLoad(setting.reached_by, good, seed)
    transactional = TransactionalLoad(setting.reached_by, in_transactions, seed + 1)
    rejected = RejectedLoad(setting.reached_by, bad_ones, seed + 2)

    with idempotent, transactional, rejected:
        loads: list[LoadClient] = [idempotent, transactional, rejected]
        wait_for_progress(loads)
        for faults in outcome.plan.rounds:
            strike_together(setting, faults)
            outcome.recoveries.append(seconds_until(loads))
        for load in loads:
            load.stop()
    outcome.acknowledged, outcome.committed = idempotent.count, transactional.count
    outcome.commits, outcome.aborts = transactional.commits, transactional.aborts
    outcome.rejected, outcome.hits = rejected.rejected, setting.relay_hits

    bootstrap = setting.cluster.bootstrap
    assert all(numbers == list(range(len(numbers))) for numbers in idempotent.acknowledged.values())
    assert read_stored_numbers(bootstrap, good) == idempotent.acknowledged
    assert read_stored_numbers(bootstrap, in_transactions) == transactional.committed
    assert not any(read_stored_numbers(bootstrap, bad_ones).values()), "a bad record is in a topic"
    setting.wait_until_whole()
    left.wait_until_nothing()
    assert "Traceback" not in setting.proxy.log(), setting.proxy.log()[-5000:]


def warm_up(setting: FaultSetting, topic: str) -> None:
    """Send a good and a bad record, so that the proxy has opened everything that it opens for the first of them."""
    bootstrap = setting.proxy.bootstrap
    with setting.client(int(bootstrap.rpartition(":")[2])) as client:
        leader = client.metadata(topic)["topics"][0]["partitions"][0]["leader_id"]
    with setting.client(setting.proxy.broker_port(leader)) as client:
        client.produce(9, [topic_data(topic, (0, bad_batch_now()))])
    setting.proxy.wait_for_violations(topic, 1)
    eventually(lambda: setting.proxy.metric("sluicegate_upstream_connections") == 0, what="the end of its connections")


def seconds_until(loads: list[LoadClient]) -> float:
    """Return how long it takes until all clients make progress (s)."""
    began = time.monotonic()
    wait_for_progress(loads)
    return time.monotonic() - began
