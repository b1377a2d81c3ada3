"""Defines the faults. A seed selects each fault, which lasts for a while and is over when `cause` returns."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Protocol

from tests.faults.relay import DirectedFault, Direction, RelayFaultKind
from tests.faults.setting import FaultSetting

_HOUR_MS = 3_600_000


class Fault(Protocol):
    """`name`: its name in the table."""

    @property
    def name(self) -> str: ...

    def cause(self, setting: FaultSetting) -> None:
        """Cause the fault and wait until it is over; the process that was hit may still be starting."""
        ...


class Side(Enum):
    """The side of the proxy on which a relay is."""

    CLIENT = "clients"
    BROKER = "brokers"


@dataclass(frozen=True, slots=True)
class RelayFault:
    """A relay disturbs connections for some seconds."""

    side: Side
    trouble: DirectedFault
    seconds: float

    @property
    def name(self) -> str:
        return f"{self.trouble.kind.value}, {self.side.value}' side"

    def cause(self, setting: FaultSetting) -> None:
        relay = setting.client_relay if self.side is Side.CLIENT else setting.broker_relay
        relay.begin(self.trouble)
        time.sleep(self.seconds)  # the duration of the fault
        relay.heal()


@dataclass(frozen=True, slots=True)
class BrokerStops:
    """A broker process is suspended (SIGSTOP), like a broker that is far too slow."""

    node: int
    seconds: float
    name: str = "a broker suspended"

    def cause(self, setting: FaultSetting) -> None:
        process = setting.cluster.nodes[self.node].process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        time.sleep(self.seconds)  # the duration of the fault
        process.send_signal(signal.SIGCONT)


@dataclass(frozen=True, slots=True)
class BrokerKilled:
    """A broker is killed (SIGKILL) and started again."""

    node: int
    name: str = "a broker killed"

    def cause(self, setting: FaultSetting) -> None:
        setting.kill_and_start(setting.cluster.nodes[self.node])


@dataclass(frozen=True, slots=True)
class ControllerKilled:
    """The active controller is killed and started again."""

    name: str = "the controller killed"

    def cause(self, setting: FaultSetting) -> None:
        setting.kill_and_start(setting.active_controller())


@dataclass(frozen=True, slots=True)
class LeadersMoved:
    """Every partition gets another leader."""

    name: str = "leaders moved"

    def cause(self, setting: FaultSetting) -> None:
        setting.move_leaders()


@dataclass(frozen=True, slots=True)
class DiskFull:
    """The disk of a broker is full and the broker ends; then it gets space and is started again."""

    name: str = "a broker's disk full"

    def cause(self, setting: FaultSetting) -> None:
        setting.fill_disk()


@dataclass(frozen=True, slots=True)
class ClockJumps:
    """The proxy's clock jumps by an hour, and back."""

    ahead_ms: int
    seconds: float

    @property
    def name(self) -> str:
        return f"the proxy's clock an hour {'ahead' if self.ahead_ms > 0 else 'behind'}"

    def cause(self, setting: FaultSetting) -> None:
        setting.set_clock(self.ahead_ms)
        time.sleep(self.seconds)  # the duration of the fault
        setting.set_clock(0)


@dataclass(frozen=True, slots=True)
class ProxyKilled:
    """All processes of the proxy are killed (SIGKILL), and it is started again on the same ports."""

    name: str = "the proxy killed"

    def cause(self, setting: FaultSetting) -> None:
        setting.kill_and_start_proxy()


@dataclass(frozen=True, slots=True)
class WorkerKilled:
    """One worker is killed (SIGKILL); the proxy itself replaces it."""

    worker: int
    name: str = "one of four workers killed"

    def cause(self, setting: FaultSetting) -> None:
        workers = setting.worker_pids()
        os.kill(workers[self.worker % len(workers)], signal.SIGKILL)


def _relay_fault(chance: Random) -> Fault:
    trouble = DirectedFault(chance.choice(list(RelayFaultKind)), chance.choice(list(Direction)))
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
    """One run: the number of workers, and rounds of simultaneous faults."""

    seed: int
    workers: int
    rounds: tuple[tuple[Fault, ...], ...]

    @property
    def over_tls(self) -> bool:
        """Return whether clients connect over TLS."""
        return self.seed % 3 == 0

    @property
    def faults(self) -> list[Fault]:
        return [fault for together in self.rounds for fault in together]


def plan_of(seed: int) -> Plan:
    """Draw the plan of a seed. Of simultaneous faults the second is a relay's, so at most one process is down."""
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
    """Draw a relay's fault; if the other is one too, on the other side, because a relay has one fault at a time."""
    while True:
        fault = _relay_fault(chance)
        if not (isinstance(fault, RelayFault) and isinstance(beside, RelayFault) and fault.side is beside.side):
            return fault


def strike_together(setting: FaultSetting, faults: Sequence[Fault]) -> None:
    """Cause the faults simultaneously and wait until all are over."""
    with ThreadPoolExecutor(len(faults)) as side_by_side:
        for done in [side_by_side.submit(fault.cause, setting) for fault in faults]:
            done.result()
