"""Runs one case and compares its cost with the limits."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bounds.case import MIB, Case, ExpectedEnd
from tests.bounds.machine import slowness
from tests.bounds.resident import PeakMeter, resident_bytes
from tests.bounds.side_process import SideProcess
from tests.bounds.stage import HOST, Stage
from tests.broker.eventually import eventually

LONGEST_WAIT_SECONDS = 0.100
# The short form runs next to other tests on busy machines, so it finds causes, not milliseconds.
_NOISE_SECONDS = 1.000
_SHORT_REPEATS = 2
GROWTH_FACTOR = 4
GROWTH_FREE_BYTES = 64 * MIB
# An idle connection consists of sockets, buffers and the objects of its session.
_CONNECTION_BYTES = 16 * 1024
# Python and the C library keep freed memory for reuse. A case that leaves more than this runs again. The second run may
# add only _REUSE_BYTES, because it reuses the memory of the first.
NOISE_BYTES = 32 * MIB
_REUSE_BYTES = 8 * MIB
_SETTLE_SECONDS = 10
_GONE_SECONDS = 15
_HONEST_CONNECTIONS = 3
_BASELINE_SECONDS = 3
_MAX_METRICS_BYTES = 1 * MIB


@dataclass
class CaseMeasurement:
    """The cost of one run of a case; `violations` describes each limit that it exceeded."""

    name: str
    sent: int
    connections: int
    held: int
    longest_wait: float = 0.0
    longest_where: str = ""
    idle_wait: float = 0.0
    baseline: float | None = None
    before: int = 0
    peak: int = 0
    after: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)

    @property
    def growth(self) -> int:
        return self.peak - self.before

    @property
    def left_bytes(self) -> int:
        return self.after - self.before

    def summary(self) -> str:
        baseline = "" if self.baseline is None else f" (idle proxy {self.baseline * 1000:.0f} ms)"
        return (
            f"{self.name}: sent {self.sent / MIB:.1f} MiB on {self.connections}; longest wait "
            f"{self.longest_wait * 1000:.0f} ms{baseline} at {self.longest_where}, an idle neighbour "
            f"{self.idle_wait * 1000:.0f} ms; grew {self.growth / MIB:.0f} MiB, "
            f"kept {self.left_bytes / MIB:.0f} MiB; {self.seconds:.1f} s"
            f"{''.join('; ' + text for text in self.violations)}"
        )


class CaseRun:
    """One case on one stage; `attacker` is the process with the senders, `neighbour` one that only sleeps and wakes."""

    def __init__(self, case: Case, stage: Stage, attacker: SideProcess, neighbour: SideProcess, thorough: bool) -> None:
        self._case = case
        self._stage = stage
        self._attacker = attacker
        self._neighbour = neighbour
        self._thorough = thorough
        assert stage.honest is not None
        self._honest = stage.honest

    def measure(self) -> CaseMeasurement:
        case, stage = self._case, self._stage
        log_from = stage.log_bytes()
        prepared = self._prepare(stage.proxy.broker_port(1), stage.ca_file, self._sender_seconds())
        sent = prepared["bytes"]
        result = CaseMeasurement(case.name, sent, prepared["connections"], case.held if case.held is not None else sent)
        self._honest.ask("start")
        meter = PeakMeter(stage.pid)
        result.before = meter.begin()
        self._neighbour.ask("start")
        self._attacker.send("go")
        if case.ends is ExpectedEnd.GONE:
            self._wait_until_closed(result, case.extent(self._thorough).seconds)
        outcome = self._attacker.response()
        self._record_waits(result)
        self._honest.ask("stop")
        result.seconds = outcome["seconds"]
        self._check_afterwards(result, outcome, meter, log_from)
        return result

    def _sender_seconds(self) -> float | None:
        """Return how long senders wait for their end (s), unless the case is about that time."""
        case = self._case
        if self._thorough or case.ends in (ExpectedEnd.STAYS, ExpectedEnd.GONE):
            return None
        return case.extent(self._thorough).seconds * slowness()

    def measure_idle(self) -> float:
        """Return the honest client's longest wait (s) while the same senders load a sink beside the proxy.

        The sink forges responses if the case's broker does, because these are a load too.
        """
        port = self._stage.proxy.config["listen"]["broker_port_base"] + 9
        mode = self._case.broker if self._case.broker.startswith("forged") else "silent"
        sink = SideProcess("tests.bounds.stand_in", node=1, nodes={1: (HOST, port)}, mode=mode).wait_ready()
        try:
            self._prepare(port, None, _BASELINE_SECONDS)
            self._honest.ask("start")
            self._attacker.ask("go")
            waits: dict[str, float] = self._honest.ask("waits")["waits"]
            self._honest.ask("stop")
            return max(waits.values())
        finally:
            sink.stop()

    def _prepare(self, port: int, ca_file: str | None, seconds: float | None) -> dict[str, Any]:
        settings = {"case": self._case.name, "thorough": self._thorough, "host": HOST, "port": port}
        return self._attacker.ask(json.dumps(settings | {"ca_file": ca_file, "seconds": seconds}))

    def _wait_until_closed(self, result: CaseMeasurement, seconds: float) -> None:
        """Wait until the proxy has closed the connections of senders that are still open on their side."""
        begun = time.monotonic()
        eventually(lambda: self._stage.open_connections() > _HONEST_CONNECTIONS, seconds, "the senders' connections")
        while (left := self._stage.open_connections()) > _HONEST_CONNECTIONS:
            if time.monotonic() - begun > seconds:
                result.violations.append(
                    f"{left - _HONEST_CONNECTIONS:.0f} senders not disconnected within {seconds:.0f} s"
                )
                return
            time.sleep(0.1)

    def _record_waits(self, result: CaseMeasurement) -> None:
        """Record the honest client's waits and lost requests, and the wait of the idle neighbour."""
        waits = self._stage.honest_waits()
        result.longest_where = max(waits["waits"], key=lambda name: waits["waits"][name])
        result.longest_wait = waits["waits"][result.longest_where]
        result.idle_wait = self._neighbour.ask("wait")["longest"]
        if waits["failures"]:
            result.violations.append(
                f"the honest client lost {len(waits['failures'])} requests: {waits['failures'][0]}"
            )

    def _check_afterwards(
        self, result: CaseMeasurement, outcome: dict[str, Any], meter: PeakMeter, log_from: int
    ) -> None:
        case, stage, violations = self._case, self._stage, result.violations
        if case.ends not in (ExpectedEnd.STAYS, ExpectedEnd.GONE) and outcome["unended"]:
            unended = f"{outcome['unended']} of {result.connections} senders"
            violations.append(f"{unended} not {case.ends.value} in {outcome['seconds']:.0f} s")
        if not stage.is_alive:
            assert stage.proxy.process is not None
            violations.append(f"the proxy died: {stage.proxy.process.returncode}")
            return
        if (left := stage.wait_until_quiet(_GONE_SECONDS)) > 0:
            violations.append(f"{left:.0f} connections left after {_GONE_SECONDS} s")
        end = time.monotonic() + _SETTLE_SECONDS
        while (now := resident_bytes(stage.pid)) - result.before > NOISE_BYTES and time.monotonic() < end:
            time.sleep(0.1)
        result.after = now
        result.peak = max(meter.end(), now)
        allowed = GROWTH_FACTOR * result.held + GROWTH_FREE_BYTES + case.beside + result.connections * _CONNECTION_BYTES
        if result.growth > allowed:
            violations.append(f"memory grew by {result.growth / MIB:.0f} MiB, {allowed / MIB:.0f} allowed")
        for page in ("/livez", "/readyz"):
            if (found := stage.proxy.get(page))[0] != 200:
                violations.append(f"{page} returned {found}")
        if (grown := stage.log_bytes() - log_from) > case.log_bytes:
            violations.append(f"the log grew by {grown / MIB:.1f} MiB")
        if (size := len(stage.proxy.get("/metrics")[1])) > _MAX_METRICS_BYTES:
            violations.append(f"/metrics has {size / MIB:.1f} MiB")
        violations += stage.faults_in_files(log_from)


class SharedStages:
    """Proxies that cases share until one fails; in the thorough form each case has its own."""

    def __init__(self, folder: Path, thorough: bool) -> None:
        self._folder = folder
        self._thorough = thorough
        self._made = 0
        self._key = ""
        self._stage: Stage | None = None
        self._attacker = SideProcess("tests.bounds.attacker").wait_ready()
        self._neighbour = SideProcess("tests.bounds.idle_neighbour").wait_ready()

    def measure(self, case: Case) -> tuple[CaseMeasurement, CaseMeasurement | None]:
        """Return the decisive run and, if it was repeated, the run before."""
        before = None
        last = self._measure_once(case)
        for _ in range(1 if self._thorough else _SHORT_REPEATS):
            if not last.violations:
                break
            self._leave_stage()
            before, last = last, self._measure_once(case)
        return last, before

    def _measure_once(self, case: Case) -> CaseMeasurement:
        run = CaseRun(case, self._stage_for(case), self._attacker, self._neighbour, self._thorough)
        result = run.measure()
        if result.left_bytes > NOISE_BYTES + case.beside and not result.violations:
            again = run.measure()
            if again.left_bytes > _REUSE_BYTES:
                more = f"{again.left_bytes / MIB:.0f} MiB more after a second run"
                result.violations.append(f"{result.left_bytes / MIB:.0f} MiB were not freed, and {more}")
        allowed = LONGEST_WAIT_SECONDS
        if not self._thorough:
            allowed = (LONGEST_WAIT_SECONDS + _NOISE_SECONDS) * slowness()
        if result.longest_wait > LONGEST_WAIT_SECONDS or self._thorough:
            if not self._stage_for(case).is_alive or result.violations:
                self._leave_stage()
                run = CaseRun(case, self._stage_for(case), self._attacker, self._neighbour, self._thorough)
            result.baseline = run.measure_idle()
            if result.longest_wait > allowed + max(result.baseline, result.idle_wait):
                result.violations.insert(
                    0,
                    f"the honest client waited {result.longest_wait * 1000:.0f} ms (an idle neighbour: "
                    f"{result.idle_wait * 1000:.0f} ms; same load beside the proxy: {result.baseline * 1000:.0f} ms)",
                )
        if result.violations or self._thorough or case.alone:
            self._leave_stage()
        return result

    def _stage_for(self, case: Case) -> Stage:
        key = repr((case.config, case.tls))
        if self._stage is None or key != self._key or case.alone:
            self._leave_stage()
            self._made += 1
            self._stage = Stage(self._folder / f"stage-{self._made}", "sound", case.config, case.tls).start()
            self._key = key
        self._stage.target.ask(f"behave {case.broker}")
        return self._stage

    def close(self) -> None:
        self._leave_stage()
        self._attacker.stop()
        self._neighbour.stop()

    def _leave_stage(self) -> None:
        if self._stage is not None:
            self._stage.stop()
            self._stage = None
