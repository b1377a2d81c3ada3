"""Sends one crowd to a proxy, and measures its cost, the resources that the proxy frees afterwards, and the small
client's waits."""

import json
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.bounds.machine import slowness
from tests.bounds.side_process import SideProcess
from tests.bounds.stage import HOST, Stage
from tests.load.gauges import HeldResources, PeakResources, processor_seconds, resources_of
from tests.load.situations import MB, Situation
from tests.load.waits import WaitDurations, p99_of, p99_text

NOISE_BYTES = 16 * MB
_LONGEST_P99_SECONDS = 0.100
_NOISE_SECONDS = 1.000
_TIMES_ALONE = 6
_LEAST_COMPARED_SECONDS = 0.0005
"""Below this value, the machine's noise exceeds the measured value."""
# The proxy notices that a paused client left when the broker reads its requests, within frame_timeout_seconds.
_GIVEN_BACK_SECONDS = 60
_ALONE_SECONDS = 0.5
_ALONE_LONG_SECONDS = 10.0
# A margin for values below a millisecond, which other load on the machine may double between rounds.
_ROUNDS = 5


@dataclass(slots=True)
class SituationResult:
    """The result of all rounds: `processor` of `seconds` (s), and the small client's waits in each round: `alone`,
    `beside` the crowd and, for some situations, while the crowd bypasses the proxy (`elsewhere`).
    """

    name: str
    alone: list[WaitDurations]
    elsewhere: list[WaitDurations]
    beside: list[WaitDurations]
    before: HeldResources
    top: HeldResources
    after: HeldResources
    processor: float
    seconds: float
    remark: str
    broken: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """One line."""
        held = "; ".join(
            f"{what} {getattr(self.before, what):,} -> {getattr(self.top, what):,} -> {getattr(self.after, what):,}"
            for what in ("resident", "proportional", "descriptors")
        )
        elsewhere = f", elsewhere {p99_text(self.elsewhere)}" if self.elsewhere else ""
        longest = max(one["longest"] for one in self.beside)
        return (
            f"{self.name}: {self.remark}; {self.processor:.1f} of {self.seconds:.1f} s; {held}; small client's p99 "
            f"{p99_text(self.alone)} alone{elsewhere}, {p99_text(self.beside)} beside "
            f"(longest {longest * 1000:.0f} ms){''.join(f'; {text}' for text in self.broken)}"
        )


class SituationRun:
    """One situation on one stage; the small client stays connected."""

    def __init__(
        self, situation: Situation, stage: Stage, small: SideProcess, crowd: SideProcess, is_long: bool
    ) -> None:
        self._situation = situation
        self._stage = stage
        self._small = small
        self._crowd = crowd
        self._is_long = is_long

    def measure(self) -> SituationResult:
        """Measure in each round without the crowd, for some situations with it beside the proxy, and with it."""
        situation, pid = self._situation, self._stage.pid
        self._stage.target.ask(f"behave {situation.broker}")
        before, cut_off = resources_of(pid), self._cut_off()
        measured = SituationResult(situation.name, [], [], [], before, before, before, 0, 0, "")
        for _ in range(_ROUNDS if situation.elsewhere and self._is_long else 1):
            measured.alone.append(self._alone())
            if situation.elsewhere and self._is_long:
                measured.elsewhere.append(self._past_the_proxy())
            outcome, failures = self._through_the_proxy(measured)
            self._is_given_back(measured)
            self._is_served(measured, outcome, failures)
        self._is_held(measured, self._cut_off() - cut_off)
        return measured

    def _through_the_proxy(self, measured: SituationResult) -> tuple[dict[str, Any], list[str]]:
        """Return the outcome of the crowd and the small client's failures."""
        pid = self._stage.pid
        self._prepare(self._stage.port(1))
        used, began = processor_seconds(pid), time.monotonic()
        self._small.ask("reset")
        with PeakResources(pid) as top:
            outcome = self._crowd.ask("go")
            beside = self._small.ask("waits")
        measured.beside.append(beside["waits"])
        measured.top = measured.top.at_least(top.held)
        measured.processor += processor_seconds(pid) - used
        measured.seconds += time.monotonic() - began
        measured.remark = outcome["remark"]
        return outcome, beside["failures"]

    def _alone(self) -> WaitDurations:
        self._small.ask("reset")
        time.sleep(_ALONE_LONG_SECONDS if self._is_long else _ALONE_SECONDS)  # the duration of the measurement
        waits: WaitDurations = self._small.ask("waits")["waits"]
        return waits

    def _past_the_proxy(self) -> WaitDurations:
        """Return the small client's waits while the crowd connects to the broker directly."""
        self._prepare(self._stage.target_address[1])
        self._small.ask("reset")
        self._crowd.ask("go")
        waits: WaitDurations = self._small.ask("waits")["waits"]
        return waits

    def _prepare(self, port: int) -> None:
        size = asdict(self._situation.size(self._is_long))
        settings = {
            "kind": self._situation.kind,
            "host": HOST,
            "port": port,
            "size": size,
            "ca_file": self._stage.ca_file,
        }
        self._crowd.ask(json.dumps(settings))

    def _cut_off(self) -> float:
        limit = self._situation.cut_off
        if limit is None:
            return 0
        lines = self._stage.proxy.get("/metrics")[1].splitlines()
        name = f'sluicegate_connections_closed_by_limit_total{{limit="{limit}"}} '
        return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))

    def _is_given_back(self, measured: SituationResult) -> None:
        """Check that memory and descriptors return to their start, apart from noise."""
        end = time.monotonic() + _GIVEN_BACK_SECONDS
        while True:
            now = measured.after = resources_of(self._stage.pid)
            connections = self._stage.open_connections()
            is_given_back = (
                now.resident - measured.before.resident < NOISE_BYTES
                and now.descriptors <= measured.before.descriptors
                and connections <= 1
            )
            if is_given_back or time.monotonic() > end:
                break
            time.sleep(0.1)
        if not is_given_back:
            more = now.descriptors - measured.before.descriptors
            measured.broken.append(f"not freed in {_GIVEN_BACK_SECONDS} s: {more} descriptors")

    def _is_served(self, measured: SituationResult, outcome: dict[str, Any], failures: list[str]) -> None:
        situation, broken = self._situation, measured.broken
        if failures:
            broken.append(f"the small client lost requests: {failures[0]}")
        connections = situation.size(self._is_long).connections
        if situation.is_served and (
            outcome["unserved"] or outcome["arrived"] < connections or not outcome["responses"]
        ):
            broken.append(
                f"{outcome['unserved']} of {connections} were not served, {outcome['arrived']} connected: "
                f"{outcome['why']}"
            )

    def _is_held(self, measured: SituationResult, cut_off: float) -> None:
        situation, broken = self._situation, measured.broken
        if (grown := measured.top.resident - measured.before.resident) > situation.most_held:
            broken.append(f"memory grew by {grown / MB:.0f} MB, {situation.most_held / MB:.0f} allowed")
        if not self._stage.is_alive:
            broken.append("the proxy died")
        broken += self._stage.faults_in_files(0)
        alone, beside = p99_of(measured.alone), p99_of(measured.beside)
        allowed = max(_LONGEST_P99_SECONDS, _TIMES_ALONE * alone)
        if not self._is_long:
            allowed += _NOISE_SECONDS * slowness()
        if beside > allowed:
            broken.append(f"the small client's p99 is above {allowed * 1000:.0f} ms")
        if not self._is_long:
            return
        if situation.cut_off is not None and cut_off < situation.long.connections:
            broken.append(f"{cut_off:.0f} of {situation.long.connections} were cut off by {situation.cut_off}")
        if measured.elsewhere:
            compared = max(alone, p99_of(measured.elsewhere), _LEAST_COMPARED_SECONDS)
            if beside > _TIMES_ALONE * compared:
                broken.append(f"the small client's p99 is more than {_TIMES_ALONE} times the p99 alone")
