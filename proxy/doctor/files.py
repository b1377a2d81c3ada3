"""Checks the certificate, key, password and schema files that the configuration names."""

from collections.abc import Iterator
from datetime import UTC, datetime

from sluicegate.config.model import Config
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.checks import MachineCheck
from sluicegate.proxy.network.tls import certificates
from sluicegate.proxy.network.tls.certificates import Flaw

_ADVICE = "correct the file; a running proxy uses it for new connections within 2 s"
_HAS_ADVICE = (": renew it", ": set ", ": check ", "pip install")


def result_of(flaw: Flaw) -> CheckResult:
    """Convert a flaw to a result. The advice is empty if the flaw's message already contains it."""
    is_of_a_file = flaw.key.endswith("_file") and not any(each in flaw.message for each in _HAS_ADVICE)
    level = Level.FAILURE if flaw.is_error else Level.WARNING
    return CheckResult(flaw.key, level, flaw.message, _ADVICE if is_of_a_file else "")


def check(config: Config) -> Iterator[CheckResult]:
    """Yield the remaining validity of each certificate without a flaw."""
    now = datetime.now(UTC)
    flawed = {flaw.key for files in certificates.tls_files(config) for flaw in certificates.flaws_of(files, now)}
    for expiry in certificates.expiries_of(config):
        if expiry.key not in flawed:
            days = int(expiry.days_left(now))
            yield CheckResult(expiry.key, Level.OK, f"{expiry.file} is valid for {days} more days")


CHECK = MachineCheck(10, check)
