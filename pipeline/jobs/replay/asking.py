"""What is asked of a replay, checked before anything starts."""

import os
from enum import StrEnum
from pathlib import Path

from sluicegate.config.loading import load_file
from sluicegate.config.topics import Fix
from sluicegate.pipeline.jobs.replay.function import function_named
from sluicegate.pipeline.jobs.replay.job import Asked
from sluicegate.pipeline.jobs.replay.policies import replay_policies
from sluicegate.pipeline.jobs.replay.writing import Headers


class FixTimes(StrEnum):
    """What a time becomes that breaks bounds, as `fix` has it in the proxy's file."""

    NOW = "now"
    CLAMP = "clamp"
    PREVIOUS = "previous"
    UNIT = "unit"


def asked_of(
    policies: Path, fix: FixTimes | None, by: str | None, headers: Headers, now_ms: int, findings: str | None
) -> Asked:
    """`policies`: the proxy's file; the others as Asked has them. Raises ConfigError, RuleUnusable and NoFunction."""
    config = load_file(policies, os.environ).config
    fixing = None if fix is None else Fix(timestamp=fix.value)
    replay_policies(config, {}, fixing).rulebook()
    if by is not None:
        function_named(by)
    return Asked(config, fixing, by, headers, now_ms, findings)
