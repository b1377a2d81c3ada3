"""What is asked of a replay, checked before anything starts."""

import os
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from sluicegate.config.loading import load_file
from sluicegate.config.model import Config
from sluicegate.config.topics import Fix
from sluicegate.pipeline.judge.policies import Policies, policies_of
from sluicegate.pipeline.replay.function import function_named
from sluicegate.pipeline.replay.job import Asked
from sluicegate.pipeline.replay.writing import Headers
from sluicegate.validation.cluster_settings import ClusterSettings


def replay_policies(config: Config, settings: Mapping[str, ClusterSettings], fix: Fix | None) -> Policies:
    """`fix` stands in the place of all that the file has, unless it is None."""
    found = policies_of(config, settings)
    refusing: dict[str, Any] = {"mode": None}
    if fix is not None:
        refusing["fix"] = None
    defaults = replace(found.defaults, mode=None, fix=fix or found.defaults.fix)
    topics = tuple(replace(topic, quarantine=None, **refusing) for topic in found.topics)
    return replace(found, defaults=defaults, topics=topics)


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
