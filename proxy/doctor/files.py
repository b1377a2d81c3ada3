"""Certificates, keys and password files that the configuration names."""

from collections.abc import Iterator
from datetime import UTC, datetime

from sluicegate.config.model import Config
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.proxy.doctor.checks import MachineCheck
from sluicegate.proxy.doctor.finding import Finding, Level
from sluicegate.proxy.network.tls import certificates

_ADVICE = "put a usable file there; a running proxy uses it for new connections within two seconds"


def findings(config: Config) -> Iterator[Finding]:
    """What `sluicegate check` says of them, and how long certificates still hold."""
    now = datetime.now(UTC)
    spoken_of = set()
    for files in certificates.tls_files(config):
        for flaw in certificates.flaws_of(files, now):
            spoken_of.add(flaw.key)
            level = Level.FAULT if flaw.is_error else Level.WARNING
            yield Finding(flaw.key, level, flaw.message, _ADVICE)
    for expiry in certificates.expiries_of(config):
        if expiry.key not in spoken_of:
            days = int(expiry.days_left(now))
            yield Finding(expiry.key, Level.GOOD, f"{expiry.file} holds for {days} more days")
    if config.upstream.sasl is not None:
        try:
            config.upstream.sasl.current_password.get()
        except PasswordUnreadable as error:
            yield Finding(error.key, Level.FAULT, error.message, "put the password there")


CHECK = MachineCheck(10, findings)
