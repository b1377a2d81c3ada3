"""Checks that policies can rely on the principals of clients."""

from collections.abc import Iterator

from sluicegate.config.model import Config
from sluicegate.config.remarks import CLAIM, SET_CLAIM, UNVERIFIED, named_principal
from sluicegate.config.source import dotted
from sluicegate.proxy.doctor.checks import MachineCheck
from sluicegate.proxy.doctor.finding import Finding, Level

_ABOUT = "principals"


def findings(config: Config) -> Iterator[Finding]:
    """Yield one finding if a policy depends on a principal."""
    named = named_principal(config)
    if named is None:
        return
    key = dotted(named)
    claim = config.listen.user_claim
    if claim is None and config.listen.principal_mapping_rules is not None:
        yield Finding(
            _ABOUT, Level.OK, f"{key}: principals of certificates are mapped; those of OAUTHBEARER unverified"
        )
    elif claim is None:
        yield Finding(_ABOUT, Level.WARNING, f"{key}: {CLAIM} is not set: {UNVERIFIED}", SET_CLAIM)
    else:
        yield Finding(_ABOUT, Level.OK, f"{key}: OAUTHBEARER principals are read from the claim {claim}")


CHECK = MachineCheck(20, findings)
