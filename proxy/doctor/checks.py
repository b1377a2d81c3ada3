"""The checks of `sluicegate doctor`.

Each module in this folder declares its check as `CHECK`; no list names the checks. Some checks depend on the result of
another check: names, ports, the advertised address, certificate names and brokers.
`sluicegate.proxy.doctor.examination` calls these directly.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules

from sluicegate.config.files.source import Source
from sluicegate.config.model import Config
from sluicegate.config.values.address import HostPort
from sluicegate.proxy import doctor
from sluicegate.proxy.doctor.check_result import CheckResult
from sluicegate.proxy.network.tls.contexts import TlsContext
from sluicegate.validation.origins import NOWHERE


@dataclass(frozen=True, slots=True)
class CheckedCluster:
    """A cluster that accepts the proxy's own requests.

    `config` names the addresses that accept these requests, and `asked` is one of them. `source` maps the
    configuration's keys to their places in the file.
    """

    config: Config
    tls: TlsContext | None
    asked: HostPort
    source: Source = field(default_factory=lambda: NOWHERE)


@dataclass(frozen=True, slots=True)
class MachineCheck:
    """Checks the configuration and this machine. Results are shown in the order of `place`."""

    place: int
    run: Callable[[Config], Iterable[CheckResult]]


@dataclass(frozen=True, slots=True)
class ClusterCheck:
    """A check that queries the cluster.

    If no broker accepts the proxy's requests, each subject in `about` is reported as not checked.
    """

    place: int
    about: tuple[str, ...]
    run: Callable[[CheckedCluster], AsyncIterator[CheckResult]]


def machine_checks() -> list[MachineCheck]:
    """Return the checks of this machine, in their order."""
    return sorted((check for check in _checks() if isinstance(check, MachineCheck)), key=lambda check: check.place)


def cluster_checks() -> list[ClusterCheck]:
    """Return the checks of the cluster, in their order."""
    return sorted((check for check in _checks() if isinstance(check, ClusterCheck)), key=lambda check: check.place)


def _checks() -> list[object]:
    modules = [import_module(f"{doctor.__name__}.{module.name}") for module in iter_modules(doctor.__path__)]
    return [getattr(module, "CHECK", None) for module in modules]
