"""Runs a small number of mutated frames; `make fuzz` runs a million. It measures the honest client's waits, so it runs
alone.

SLUICEGATE_FUZZ_SEED and _FRAMES set the seed and the number. Each run prints its seed.
"""

import os
import random
from pathlib import Path

import pytest

from tests.bounds.case import MIB
from tests.bounds.machine import slowness
from tests.bounds.measurement import LONGEST_WAIT_SECONDS
from tests.bounds.resident import PeakMeter, resident_bytes
from tests.bounds.side_process import SideProcess
from tests.bounds.stage import HOST, Stage
from tests.broker.eventually import eventually

THOROUGH = "SLUICEGATE_THOROUGH" in os.environ
SEED = int(os.environ.get("SLUICEGATE_FUZZ_SEED") or random.SystemRandom().randrange(1 << 31))
FRAMES = int(os.environ.get("SLUICEGATE_FUZZ_FRAMES") or (1_000_000 if THOROUGH else 20_000))
_CONNECTIONS = 32
_NOISE_SECONDS = 0.4  # senders, broker and proxy share two cores with the honest client
_MAX_GROWTH_BYTES = 128 * MIB
_MAX_KEPT_BYTES = 48 * MIB
_MAX_LOG_BYTES = 8 * MIB


@pytest.mark.timeout(7200)
def test_mutated_frames_over_sockets_harm_no_other_client(tmp_path: Path) -> None:
    limits = {"frame_timeout_seconds": 2, "idle_timeout_seconds": 5}
    stage = Stage(tmp_path / "stage", config={"limits": limits})
    sender: SideProcess | None = None
    try:
        stage.start()
        assert stage.honest is not None
        stage.honest.ask("start")
        meter = PeakMeter(stage.pid)
        before = meter.begin()
        sender = SideProcess(
            "tests.fuzz.socket_sender",
            host=HOST,
            port=stage.port(1),
            seed=SEED,
            frames=FRAMES,
            connections=_CONNECTIONS,
        ).wait_ready()
        done = sender.response(7000)
        waits = stage.honest.ask("waits")
        stage.honest.ask("stop")
        print(f"{done['counts']} in {done['seconds']:.0f} s, seed {SEED}; the honest client waited {waits}")

        assert stage.is_alive
        assert stage.wait_until_quiet(30) == 0, "a connection is stuck"
        assert waits["failures"] == []
        assert max(waits["waits"].values()) < (LONGEST_WAIT_SECONDS + _NOISE_SECONDS) * slowness()
        assert meter.end() - before < _MAX_GROWTH_BYTES
        eventually(lambda: resident_bytes(stage.pid) - before < _MAX_KEPT_BYTES, 10, "memory is released")
        assert stage.log_bytes() < _MAX_LOG_BYTES
        assert "internal error" not in stage.proxy.log()
        assert stage.faults_in_files(0) == []
        stage.wait_until_live()
    finally:
        if sender is not None:
            sender.stop()
        stage.stop()
