"""Checks whether every entry of `topics` has an owner if any entry has one.

Alerts and reports about entries without an owner name no team.
"""

from collections.abc import Iterator

from sluicegate.config.model import Config
from sluicegate.proxy.doctor.check_result import CheckResult, Level, names_shortened
from sluicegate.proxy.doctor.checks import MachineCheck

_ABOUT = "owners"


def check(config: Config) -> Iterator[CheckResult]:
    """Yield one result if the configuration names an owner."""
    owners = [topic.owner or config.defaults.owner for topic in config.topics]
    teams = {owner.team for owner in (*owners, config.defaults.owner) if owner is not None}
    if not teams:
        return
    without = [topic.match for topic, owner in zip(config.topics, owners, strict=True) if owner is None]
    if without:
        found = f"entries of topics without an owner: {names_shortened(without)}"
        yield CheckResult(_ABOUT, Level.NOTE, found, "add owner to the entry, to its file, or to defaults")
    else:
        yield CheckResult(
            _ABOUT, Level.OK, f"each entry of topics has an owner; teams: {names_shortened(sorted(teams))}"
        )


CHECK = MachineCheck(60, check)
