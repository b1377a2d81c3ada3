"""What this machine gives the proxy: descriptors, held against what the file lets clients have."""

import resource
from collections.abc import Iterator

from sluicegate.config.model import Config
from sluicegate.proxy.doctor.checks import MachineCheck
from sluicegate.proxy.doctor.finding import Finding, Level
from sluicegate.proxy.session.opening.admission import connections_within, descriptors_for

_ABOUT = "descriptors"
_FEW_CONNECTIONS = 1000


def findings(config: Config) -> Iterator[Finding]:
    """The proxy raises its soft limit to the hard one when it starts, so the hard one counts."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    possible = connections_within(hard)
    told = "any number of" if hard == resource.RLIM_INFINITY else f"{hard}"
    room = f"this shell allows {told} descriptors, enough for {possible} clients at once"
    advice = (
        "raise the hard limit where the proxy is started: ulimit -Hn, LimitNOFILE= in a unit, the container's ulimits"
    )
    wanted = config.limits.max_connections
    if wanted is not None and wanted > possible:
        needed = f"limits.max_connections is {wanted}, which needs {descriptors_for(wanted)}"
        yield Finding(_ABOUT, Level.FAULT, f"{room}; {needed}", advice)
    elif possible < _FEW_CONNECTIONS:
        yield Finding(_ABOUT, Level.WARNING, room, advice)
    else:
        yield Finding(_ABOUT, Level.GOOD, room)


CHECK = MachineCheck(30, findings)
