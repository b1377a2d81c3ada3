"""Runs one line and holds what it cost against the law."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bounds.line import MIB, Ends, Line
from tests.bounds.machine import slowness
from tests.bounds.resident import PeakMeter, resident_bytes
from tests.bounds.side_process import SideProcess
from tests.bounds.stage import HOST, Stage

LONGEST_WAIT_SECONDS = 0.100
# The short form runs among other tests on machines that do other things, and are slower than usual then: it looks for
# causes, not for milliseconds.
_NOISE_SECONDS = 1.000
_SHORT_REPEATS = 2
GROWTH_FACTOR = 4
GROWTH_FREE_BYTES = 64 * MIB
# A connection with nothing in flight: sockets, buffers and the session's objects.
_CONNECTION_BYTES = 16 * 1024
# Python and the C library keep freed memory for reuse. A line that leaves more than this behind runs again, and the
# second run may leave only _REUSE_BYTES more: it uses what the first one left.
NOISE_BYTES = 32 * MIB
_REUSE_BYTES = 8 * MIB
_SETTLE_SECONDS = 10
_GONE_SECONDS = 15
_HONEST_CONNECTIONS = 3
_PATIENCE_SECONDS = 30
_BASELINE_SECONDS = 3
_MAX_METRICS_BYTES = 1 * MIB


@dataclass
class Measured:
    """What one run of a line cost; `broken` says in words what of the law did not hold."""

    name: str
    sent: int
    connections: int
    held: int
    longest_wait: float = 0.0
    longest_where: str = ""
    baseline: float | None = None
    before: int = 0
    peak: int = 0
    after: int = 0
    seconds: float = 0.0
    broken: list[str] = field(default_factory=list)

    @property
    def growth(self) -> int:
        return self.peak - self.before

    @property
    def kept(self) -> int:
        return self.after - self.before

    def said(self) -> str:
        baseline = "" if self.baseline is None else f" (idle proxy {self.baseline * 1000:.0f} ms)"
        return (
            f"{self.name}: sent {self.sent / MIB:.1f} MiB on {self.connections}; longest wait "
            f"{self.longest_wait * 1000:.0f} ms{baseline} at {self.longest_where}; grew {self.growth / MIB:.0f} MiB, "
            f"kept {self.kept / MIB:.0f} MiB; {self.seconds:.1f} s{''.join('; ' + text for text in self.broken)}"
        )


class Run:
    """One line against one stage; `attacker` is a process that sends lines."""

    def __init__(self, line: Line, stage: Stage, attacker: SideProcess, thorough: bool) -> None:
        self._line = line
        self._stage = stage
        self._attacker = attacker
        self._thorough = thorough
        assert stage.honest is not None
        self._honest = stage.honest

    def measure(self) -> Measured:
        line, stage = self._line, self._stage
        log_from = stage.log_bytes()
        said = self._prepare(stage.proxy.broker_port(1), stage.ca_file, self._patience())
        sent = said["bytes"]
        result = Measured(line.name, sent, said["connections"], line.held if line.held is not None else sent)
        self._honest.ask("come")
        meter = PeakMeter(stage.pid)
        result.before = meter.begin()
        self._attacker.tell("go")
        if line.ends is Ends.GONE:
            self._see_them_gone(result, line.extent(self._thorough).seconds)
        outcome = self._attacker.answer()
        self._take_waits(result)
        self._honest.ask("leave")
        result.seconds = outcome["seconds"]
        self._look_after(result, outcome, meter, log_from)
        return result

    def _patience(self) -> float | None:
        """How long senders wait for their end, where that is not what the line is about."""
        line = self._line
        if self._thorough or line.ends in (Ends.STAYS, Ends.GONE):
            return None
        return line.extent(self._thorough).seconds * slowness()

    def measure_idle(self) -> float:
        """The same senders at a sink beside the proxy, while the honest client's proxy has nothing else to do. Where a
        broker lies, they get the same lies from there: what it sends is a load too.
        """
        port = self._stage.proxy.config["listen"]["broker_ports"] + 9
        mode = self._line.broker if self._line.broker.startswith("lies") else "silent"
        sink = SideProcess("tests.bounds.stand_in", node=1, nodes={1: (HOST, port)}, mode=mode).wait_ready()
        try:
            self._prepare(port, None, _BASELINE_SECONDS)
            self._honest.ask("come")
            self._attacker.ask("go")
            waits: dict[str, float] = self._honest.ask("waits")["waits"]
            self._honest.ask("leave")
            return max(waits.values())
        finally:
            sink.stop()

    def _prepare(self, port: int, ca_file: str | None, seconds: float | None) -> dict[str, Any]:
        what = {"line": self._line.name, "thorough": self._thorough, "host": HOST, "port": port}
        return self._attacker.ask(json.dumps(what | {"ca_file": ca_file, "seconds": seconds}))

    def _see_them_gone(self, result: Measured, seconds: float) -> None:
        """By the proxy's own count, while the senders are still there."""
        begun = time.monotonic()
        time.sleep(seconds / 4)
        while (left := self._stage.open_connections()) > _HONEST_CONNECTIONS:
            if time.monotonic() - begun > seconds:
                result.broken.append(f"{left - _HONEST_CONNECTIONS:.0f} senders not let go in {seconds:.0f} s")
                return
            time.sleep(0.1)

    def _take_waits(self, result: Measured) -> None:
        """Each probe has to have been answered once more: what is still waited for counts."""
        honest = self._honest
        counted = honest.ask("waits")["counts"]
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            waits = honest.ask("waits")
            if all(waits["counts"][name] > counted[name] + 1 for name in counted) or time.monotonic() > end:
                break
            time.sleep(0.01)
        result.longest_where = max(waits["waits"], key=lambda name: waits["waits"][name])
        result.longest_wait = waits["waits"][result.longest_where]
        if waits["failures"]:
            result.broken.append(f"the honest client lost {len(waits['failures'])} requests: {waits['failures'][0]}")

    def _look_after(self, result: Measured, outcome: dict[str, Any], meter: PeakMeter, log_from: int) -> None:
        line, stage, broken = self._line, self._stage, result.broken
        if line.ends not in (Ends.STAYS, Ends.GONE) and outcome["unended"]:
            unended = f"{outcome['unended']} of {result.connections} senders"
            broken.append(f"{unended} not {line.ends.value} in {outcome['seconds']:.0f} s")
        if not stage.is_alive:
            assert stage.proxy.process is not None
            broken.append(f"the proxy died: {stage.proxy.process.returncode}")
            return
        if (left := stage.wait_until_quiet(_GONE_SECONDS)) > 0:
            broken.append(f"{left:.0f} connections left after {_GONE_SECONDS} s")
        end = time.monotonic() + _SETTLE_SECONDS
        while (now := resident_bytes(stage.pid)) - result.before > NOISE_BYTES and time.monotonic() < end:
            time.sleep(0.1)
        result.after = now
        result.peak = max(meter.end(), now)
        allowed = GROWTH_FACTOR * result.held + GROWTH_FREE_BYTES + line.beside + result.connections * _CONNECTION_BYTES
        if result.growth > allowed:
            broken.append(f"memory grew by {result.growth / MIB:.0f} MiB, {allowed / MIB:.0f} allowed")
        for page in ("/livez", "/readyz"):
            if (said := stage.proxy.get(page)) != (200, "ok\n"):
                broken.append(f"{page} says {said}")
        if (grown := stage.log_bytes() - log_from) > line.log_bytes:
            broken.append(f"the log grew by {grown / MIB:.1f} MiB")
        if (size := len(stage.proxy.get("/metrics")[1])) > _MAX_METRICS_BYTES:
            broken.append(f"/metrics has {size / MIB:.1f} MiB")
        broken += stage.wrong_in_files(log_from)


class Stages:
    """Proxies that lines share while nothing is broken; in the thorough form each line has one of its own."""

    def __init__(self, folder: Path, thorough: bool) -> None:
        self._folder = folder
        self._thorough = thorough
        self._made = 0
        self._key = ""
        self._stage: Stage | None = None
        self._attacker = SideProcess("tests.bounds.attacker").wait_ready()

    def measure(self, line: Line) -> tuple[Measured, Measured | None]:
        """The run that counts, and the one before it where that had to be repeated."""
        before = None
        last = self._measure_once(line)
        for _ in range(1 if self._thorough else _SHORT_REPEATS):
            if not last.broken:
                break
            self._leave_stage()
            before, last = last, self._measure_once(line)
        return last, before

    def _measure_once(self, line: Line) -> Measured:
        run = Run(line, self._stage_for(line), self._attacker, self._thorough)
        result = run.measure()
        if result.kept > NOISE_BYTES + line.beside and not result.broken:
            again = run.measure()
            if again.kept > _REUSE_BYTES:
                more = f"{again.kept / MIB:.0f} MiB more after a second run"
                result.broken.append(f"{result.kept / MIB:.0f} MiB are kept, and {more}")
        allowed = LONGEST_WAIT_SECONDS
        if not self._thorough:
            allowed = (LONGEST_WAIT_SECONDS + _NOISE_SECONDS) * slowness()
        if result.longest_wait > LONGEST_WAIT_SECONDS or self._thorough:
            if not self._stage_for(line).is_alive or result.broken:
                self._leave_stage()
                run = Run(line, self._stage_for(line), self._attacker, self._thorough)
            result.baseline = run.measure_idle()
            if result.longest_wait > allowed + result.baseline:
                result.broken.insert(
                    0,
                    f"others waited {result.longest_wait * 1000:.0f} ms (with the same load elsewhere "
                    f"{result.baseline * 1000:.0f} ms)",
                )
        if result.broken or self._thorough or line.alone:
            self._leave_stage()
        return result

    def _stage_for(self, line: Line) -> Stage:
        key = repr((line.config, line.tls))
        if self._stage is None or key != self._key or line.alone:
            self._leave_stage()
            self._made += 1
            self._stage = Stage(self._folder / f"stage-{self._made}", "sound", line.config, line.tls).start()
            self._key = key
        self._stage.target.ask(f"behave {line.broker}")
        return self._stage

    def close(self) -> None:
        self._leave_stage()
        self._attacker.stop()

    def _leave_stage(self) -> None:
        if self._stage is not None:
            self._stage.stop()
            self._stage = None
