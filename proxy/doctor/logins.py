"""Checks that policies can rely on clients' principals."""

from collections.abc import Iterator

from sluicegate.config.files.source import dotted
from sluicegate.config.model import Config
from sluicegate.config.remarks import DECLARE, UNDECLARED, named_principal
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.checks import MachineCheck

_ABOUT = "principals"


def check(config: Config) -> Iterator[CheckResult]:
    """Yield one result if a policy depends on a principal."""
    named = named_principal(config)
    if named is None:
        return
    listen = config.listen
    known = []
    if listen.principal_mapping_rules is not None:
        known.append("mapped subjects of certificates")
    if listen.user_name_is_principal:
        known.append(f"user names of {', '.join(listen.user_name_is_principal)}")
    if listen.user_claim is not None:
        known.append(f"the claim {listen.user_claim} of OAUTHBEARER tokens")
    key = dotted(named)
    if known:
        found = f"{key}: principals are {' and '.join(known)}; those of other SASL logins are unverified"
        yield CheckResult(_ABOUT, Level.OK, found)
    else:
        yield CheckResult(_ABOUT, Level.WARNING, f"{key}: {UNDECLARED}", DECLARE)


CHECK = MachineCheck(20, check)
