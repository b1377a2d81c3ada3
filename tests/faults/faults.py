"""What goes wrong: each fault is drawn by a seed, strikes for a while, and is over when `strike` returns."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Protocol

from tests.faults.relay import Trouble, Way, Wrong
from tests.faults.setting import Setting

_HOUR_MS = 3_600_000


class Fault(Protocol):
    """`name` is what the table calls it."""

    @property
    def name(self) -> str: ...

    def strike(self, setting: Setting) -> None:
        """Until it is over; who was hit may still be getting up."""
        ...


class Side(Enum):
    """Where a relay stands."""

    CLIENT = "clients"
    BROKER = "brokers"


@dataclass(frozen=True, slots=True)
class RelayFault:
    """A relay does wrong for some seconds."""

    side: Side
    trouble: Trouble
    seconds: float

    @property
    def name(self) -> str:
        return f"{self.trouble.wrong.value}, {self.side.value}' side"

    def strike(self, setting: Setting) -> None:
        relay = setting.client_relay if self.side is Side.CLIENT else setting.broker_relay
        relay.begin(self.trouble)
        time.sleep(self.seconds)  # so long is the fault
        relay.heal()


@dataclass(frozen=True, slots=True)
class BrokerStops:
    """A broker process stands still (SIGSTOP), as one does that is far too slow."""

    node: int
    seconds: float
    name: str = "a broker stands still"

    def strike(self, setting: Setting) -> None:
        process = setting.cluster.nodes[self.node].process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        time.sleep(self.seconds)  # so long is the fault
        process.send_signal(signal.SIGCONT)


@dataclass(frozen=True, slots=True)
class BrokerKilled:
    """kill -9, and a start again."""

    node: int
    name: str = "a broker killed"

    def strike(self, setting: Setting) -> None:
        setting.kill_and_start(setting.cluster.nodes[self.node])


@dataclass(frozen=True, slots=True)
class ControllerKilled:
    """The active controller, whichever broker that is."""

    name: str = "the controller killed"

    def strike(self, setting: Setting) -> None:
        setting.kill_and_start(setting.active_controller())


@dataclass(frozen=True, slots=True)
class LeadersMoved:
    """Every partition's leader is another one afterwards."""

    name: str = "leaders moved"

    def strike(self, setting: Setting) -> None:
        setting.move_leaders()


@dataclass(frozen=True, slots=True)
class DiskFull:
    """A broker can write nothing more, and ends; then there is room again, and it is started."""

    name: str = "a broker's disk full"

    def strike(self, setting: Setting) -> None:
        setting.fill_disk()


@dataclass(frozen=True, slots=True)
class ClockJumps:
    """The proxy's clock jumps by an hour, and back."""

    ahead_ms: int
    seconds: float

    @property
    def name(self) -> str:
        return f"the proxy's clock an hour {'ahead' if self.ahead_ms > 0 else 'behind'}"

    def strike(self, setting: Setting) -> None:
        setting.set_clock(self.ahead_ms)
        time.sleep(self.seconds)  # so long is the fault
        setting.set_clock(0)


@dataclass(frozen=True, slots=True)
class ProxyKilled:
    """kill -9 of all of it, and a start again on the same ports."""

    name: str = "the proxy killed"

    def strike(self, setting: Setting) -> None:
        setting.kill_and_start_proxy()


@dataclass(frozen=True, slots=True)
class WorkerKilled:
    """kill -9 of one worker; nobody starts it again but the proxy itself."""

    worker: int
    name: str = "one of four workers killed"

    def strike(self, setting: Setting) -> None:
        workers = setting.workers()
        os.kill(workers[self.worker % len(workers)], signal.SIGKILL)


def _relay_fault(chance: Random) -> Fault:
    trouble = Trouble(chance.choice(list(Wrong)), chance.choice(list(Way)))
    return RelayFault(chance.choice(list(Side)), trouble, chance.uniform(0.3, 1.5))


def _broker_fault(chance: Random) -> Fault:
    node = chance.randrange(3)
    kinds: tuple[Fault, ...] = (
        BrokerStops(node, chance.uniform(0.5, 2)),
        BrokerKilled(node),
        ControllerKilled(),
        LeadersMoved(),
        DiskFull(),
    )
    return chance.choice(kinds)


def _proxy_fault(chance: Random, workers: int) -> Fault:
    jump = ClockJumps(chance.choice((-_HOUR_MS, _HOUR_MS)), chance.uniform(0.3, 1.5))
    kinds: tuple[Fault, ...] = (ProxyKilled(), jump, WorkerKilled(chance.randrange(workers)))
    return chance.choice(kinds[: 2 if workers == 1 else 3])


@dataclass(frozen=True, slots=True)
class Plan:
    """One run: how many workers the proxy has, and what strikes at once, in turn."""

    seed: int
    workers: int
    rounds: tuple[tuple[Fault, ...], ...]

    @property
    def over_tls(self) -> bool:
        """Whether clients reach the proxy so."""
        return self.seed % 3 == 0

    @property
    def faults(self) -> list[Fault]:
        return [fault for together in self.rounds for fault in together]


def plan_of(seed: int) -> Plan:
    """Of faults that strike at once the second is always a relay's: one broker and one proxy are down at most."""
    chance = Random(seed)
    workers = chance.choice((1, 4))
    first: Sequence[Callable[[], Fault]] = (
        lambda: _relay_fault(chance),
        lambda: _relay_fault(chance),
        lambda: _broker_fault(chance),
        lambda: _proxy_fault(chance, workers),
    )
    rounds = []
    for _ in range(chance.choice((2, 3))):
        together = [chance.choice(first)()]
        if chance.random() < 0.3:
            together.append(_other_relay_fault(chance, together[0]))
        rounds.append(tuple(together))
    return Plan(seed, workers, tuple(rounds))


def _other_relay_fault(chance: Random, beside: Fault) -> Fault:
    """A relay does one thing wrong at a time."""
    while True:
        fault = _relay_fault(chance)
        if not (isinstance(fault, RelayFault) and isinstance(beside, RelayFault) and fault.side is beside.side):
            return fault


def strike_together(setting: Setting, faults: Sequence[Fault]) -> None:
    """Until all of them are over."""
    with ThreadPoolExecutor(len(faults)) as side_by_side:
        for done in [side_by_side.submit(fault.strike, setting) for fault in faults]:
            done.result()
