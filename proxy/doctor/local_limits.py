"""Compares this machine's limit on file descriptors with the number of clients that the configuration allows."""

import resource
from collections.abc import Iterator

from sluicegate.config.model import Config
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.checks import MachineCheck
from sluicegate.proxy.network.connection_limit import connections_within, descriptors_for

_ABOUT = "descriptors"
_FEW_CONNECTIONS = 1000


def check(config: Config) -> Iterator[CheckResult]:
    """Check the hard limit, to which the proxy raises its soft limit when it starts."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    possible = connections_within(hard)
    allowed = "any number of" if hard == resource.RLIM_INFINITY else f"{hard}"
    room = f"this shell allows {allowed} descriptors, enough for {possible} clients"
    advice = "raise the hard limit of the proxy's process: ulimit -Hn, LimitNOFILE= in a unit, ulimits of the container"
    wanted = config.limits.max_connections
    if wanted is not None and wanted > possible:
        needed = f"limits.max_connections is {wanted}, which needs {descriptors_for(wanted)}"
        yield CheckResult(_ABOUT, Level.FAILURE, f"{room}; {needed}", advice)
    elif possible < _FEW_CONNECTIONS:
        yield CheckResult(_ABOUT, Level.WARNING, room, advice)
    else:
        yield CheckResult(_ABOUT, Level.OK, room)


CHECK = MachineCheck(30, check)
