"""What is asked of a replay, checked before anything starts."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from sluicegate.config.loading import load_file
from sluicegate.config.model import Config
from sluicegate.config.topics import Fix
from sluicegate.pipeline.jobs.audit.policies import Policies, policies_of
from sluicegate.pipeline.jobs.replay.function import function_named
from sluicegate.pipeline.jobs.replay.writing import Headers
from sluicegate.validation.cluster_settings import ClusterSettings


class FixTimes(StrEnum):
    """What a time becomes that breaks bounds, as `fix` has it in the proxy's file."""

    NOW = "now"
    CLAMP = "clamp"
    PREVIOUS = "previous"
    UNIT = "unit"


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What the command line says. `fix` and `by`: how to correct, see `replay_policies` and `function_named`; `now_ms`:
    the moment that times are validated by; `findings`: the folder of a validation whose bad records are taken from the
    topics themselves, None: topics hold dead letters.
    """

    config: Config
    fix: Fix | None
    by: str | None
    headers: Headers
    now_ms: int
    findings: str | None = None


def replay_request(
    policies: Path, fix: FixTimes | None, by: str | None, headers: Headers, now_ms: int, findings: str | None
) -> ReplayRequest:
    """Checks what was asked for."""
    config = load_file(policies, os.environ).config
    fixing = None if fix is None else Fix(timestamp=fix.value)
    replay_policies(config, {}, fixing).rulebook()
    if by is not None:
        function_named(by)
    return ReplayRequest(config, fixing, by, headers, now_ms, findings)


def replay_policies(config: Config, settings: Mapping[str, ClusterSettings], fix: Fix | None) -> Policies:
    """`fix` stands in the place of all that the file has, unless it is None."""
    found = policies_of(config, settings)
    rejecting: dict[str, Any] = {"mode": None}
    if fix is not None:
        rejecting["fix"] = None
    defaults = replace(found.defaults, mode=None, fix=fix or found.defaults.fix)
    topics = tuple(replace(topic, quarantine=None, **rejecting) for topic in found.topics)
    return replace(found, defaults=defaults, topics=topics)
