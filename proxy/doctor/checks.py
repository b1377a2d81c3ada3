"""The checks of `sluicegate doctor`. A module of this room that has one declares it as `CHECK`; nothing lists them.

What has to come in between, because each looks at what another found (names, ports, the advertised address, the brokers
themselves), is in `sluicegate.proxy.doctor.examination`.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from sluicegate.config.model import Config
from sluicegate.config.values.address import HostPort
from sluicegate.proxy import doctor
from sluicegate.proxy.doctor.finding import Finding
from sluicegate.proxy.network.tls.contexts import TlsContext


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that lets the proxy ask. `config`: the file's, with the addresses where a broker does; `asked`: one."""

    config: Config
    tls: TlsContext | None
    asked: HostPort


@dataclass(frozen=True, slots=True)
class MachineCheck:
    """Looks at the file and at this machine. Findings are shown in the order of `place`."""

    place: int
    findings: Callable[[Config], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class ClusterCheck:
    """Asks a cluster. Where no broker lets the proxy ask, each of `about` is reported as not seen."""

    place: int
    about: tuple[str, ...]
    findings: Callable[[Cluster], AsyncIterator[Finding]]


def machine_checks() -> list[MachineCheck]:
    """All that look at this machine, in their order."""
    return sorted((check for check in _checks() if isinstance(check, MachineCheck)), key=lambda check: check.place)


def cluster_checks() -> list[ClusterCheck]:
    """All that ask a cluster, in their order."""
    return sorted((check for check in _checks() if isinstance(check, ClusterCheck)), key=lambda check: check.place)


def _checks() -> list[object]:
    modules = [import_module(f"{doctor.__name__}.{module.name}") for module in iter_modules(doctor.__path__)]
    return [getattr(module, "CHECK", None) for module in modules]
