"""Mixed clients, faults, configuration changes and garbage run repeatedly, and nothing is lost, leaked or growing.

The test takes half a minute in `make test-long`. `make soak MINUTES=60` runs longer and writes its result into
bench/results/reliability.md. With an even seed, clients use TLS.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import yaml

from tests.broker.certificates import Authority
from tests.faults.faults import BrokerKilled, BrokerStops, Fault, LeadersMoved, RelayFault, Side, strike_together
from tests.faults.left import LeftoverCheck
from tests.faults.load import IdempotentLoad, LoadClient, RejectedLoad, TransactionalLoad, wait_for_progress
from tests.faults.reader import read_stored_numbers
from tests.faults.relay import DirectedFault, Direction, RelayFaultKind
from tests.faults.setting import FaultSetting, RelayedCluster, cluster_in
from tests.faults.test_runs import warm_up
from tests.fuzz.mutations import mutate
from tests.fuzz.seeds import seed_requests
from tests.oracle.kafka_java import ROOT
from tests.soak.report import SoakResult, write_report
from tests.soak.samples import ADDED, DESCRIPTORS, MEMORY, Sampling
from tests.wire.raw_client import RawClient

MINUTES = float(os.environ.get("SLUICEGATE_SOAK_MINUTES") or 0.5)
SEED = int(os.environ.get("SLUICEGATE_SOAK_SEED") or 1)
_WORKERS = 2
_LONG_MINUTES = 10
"""The duration from which growth is measurable."""
_MOST_AN_HOUR = {MEMORY: 20.0, DESCRIPTORS: 10.0, ADDED: 10.0}
_GARBAGE = ("sluicegate_protocol_errors_total",)
_CONNECTIONS = 20
_HEARD_SECONDS = 0.05


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelayedCluster]:
    with cluster_in(tmp_path_factory.mktemp("cluster")).running() as made:
        yield made


@pytest.mark.long
@pytest.mark.timeout(60 * MINUTES + 900)
def test_a_soak_loses_no_record_leaks_nothing_and_does_not_grow(cluster: RelayedCluster, tmp_path: Path) -> None:
    soaked = SoakResult(MINUTES, SEED)
    authority = Authority(tmp_path) if soaked.over_tls else None
    setting = FaultSetting(cluster, tmp_path, _WORKERS, SEED, authority)
    with setting.running():
        run_soak(setting, soaked)

    print(soaked.summary(), flush=True)
    if os.environ.get("SLUICEGATE_WRITE_SOAK"):
        write_report(ROOT / "bench" / "results" / "reliability.md", soaked)
    if MINUTES >= _LONG_MINUTES:
        for what, most in _MOST_AN_HOUR.items():
            assert soaked.slopes[what].is_beyond_doubt_above < most, f"{what} grows: {soaked.slopes[what]}"


def run_soak(setting: FaultSetting, soaked: SoakResult) -> None:
    setting.wait_until_whole()
    good, in_transactions, bad_ones, asked = (setting.topic() for _ in range(4))
    warm_up(setting, bad_ones)
    left = LeftoverCheck(setting.proxy, _GARBAGE)
    idempotent = IdempotentLoad(setting.reached_by, good, SEED)
    transactional = TransactionalLoad(setting.reached_by, in_transactions, SEED + 1)
    rejected = RejectedLoad(setting.reached_by, bad_ones, SEED + 2)
    loads: list[LoadClient] = [idempotent, transactional, rejected]
    chance = Random(SEED)

    with idempotent, transactional, rejected:
        wait_for_progress(loads)
        with Sampling(setting, asked) as sampling:
            ends = time.monotonic() + 60 * MINUTES
            while time.monotonic() < ends:
                strike_together(setting, [_fault(chance)])
                wait_for_progress(loads)
                _another_file(setting, soaked)
                _garbage(setting, chance, soaked)
                soaked.faults += 1
        for load in loads:
            load.stop()
    soaked.samples, soaked.waits_ms = len(sampling.samples.memory_mb), sampling.samples.medians()
    if MINUTES >= _LONG_MINUTES:
        soaked.slopes = sampling.samples.slopes()
    soaked.stored, soaked.committed, soaked.rejected = idempotent.count, transactional.count, rejected.rejected

    bootstrap = setting.cluster.bootstrap
    assert read_stored_numbers(bootstrap, good) == idempotent.acknowledged
    assert read_stored_numbers(bootstrap, in_transactions) == transactional.committed
    assert not any(read_stored_numbers(bootstrap, bad_ones).values()), "a bad record is in a topic"
    setting.wait_until_whole()
    assert setting.proxy.metric("sluicegate_config_reloads_total") >= 1
    left.wait_until_nothing()
    assert "Traceback" not in setting.proxy.log(), setting.proxy.log()[-5000:]


def _fault(chance: Random) -> Fault:
    """Draw a fault that does not end the proxy, because a restart would reset growing values."""
    trouble = DirectedFault(chance.choice(list(RelayFaultKind)), chance.choice(list(Direction)))
    relay = RelayFault(chance.choice(list(Side)), trouble, chance.uniform(0.3, 1.5))
    node = chance.randrange(3)
    return chance.choice([relay, relay, relay, BrokerStops(node, 1.0), LeadersMoved(), BrokerKilled(node)])


def _another_file(setting: FaultSetting, soaked: SoakResult) -> None:
    """Write a changed configuration that alters no verdict about the sent records."""
    soaked.files += 1
    topics = [{"match": f"soak-{soaked.files}", "mode": "observe"}]
    new = Path(setting.proxy.folder, "new.yaml")
    new.write_text(yaml.safe_dump(setting.proxy.config | {"topics": topics}))
    new.replace(Path(setting.proxy.folder, "sluicegate.yaml"))


def _garbage(setting: FaultSetting, chance: Random, soaked: SoakResult) -> None:
    """Open connections that send damaged frames, half of them without TLS if clients use it. Each is closed by the
    proxy or leaves.
    """
    for connected in (setting.client_at, RawClient) * (_CONNECTIONS // 2):
        with connected(setting.proxy.bootstrap) as client:
            frames = [bytes(mutate(chance.choice(seed_requests()), chance, seed_requests())) for _ in range(3)]
            try:
                client.socket.sendall(b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames))
                client.socket.settimeout(_HEARD_SECONDS)
                while client.socket.recv(1 << 16):
                    pass
            except OSError:
                pass  # disconnected, or no response
            soaked.damaged += len(frames)
