"""Checks the arguments of a replay before it starts."""

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
from sluicegate.pipeline.jobs.replay.decisions import function_named
from sluicegate.pipeline.jobs.replay.writing import Headers
from sluicegate.validation.cluster_settings import ClusterSettings


class FixTimes(StrEnum):
    """Ways to correct times that are out of bounds, like `fix` in the proxy's file."""

    NOW = "now"
    CLAMP = "clamp"
    PREVIOUS = "previous"
    UNIT = "unit"


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """The arguments of a replay.

    `fix` and `by` determine the corrections; see `replay_policies` and `function_named`. `now_ms` is the time against
    which timestamps are validated. `findings` is the folder of an audit; the replay reads the bad records that it lists
    from the topics themselves. None means that the topics contain dead letters.
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
    """Check the arguments and return the request. `policies` is the proxy's configuration file.

    Raises ConfigError, RuleUnusable and NoFunction.
    """
    config = load_file(policies, os.environ).config
    fixing = None if fix is None else Fix(timestamp=fix.value)
    replay_policies(config, {}, fixing).rulebook()
    if by is not None:
        function_named(by)
    return ReplayRequest(config, fixing, by, headers, now_ms, findings)


def replay_policies(config: Config, settings: Mapping[str, ClusterSettings], fix: Fix | None) -> Policies:
    """Return the file's policies, changed to reject every violation. `fix`, if given, replaces all fixes in the file.

    A topic with quarantine has no fix, because only rejected records are quarantined. A replay does not quarantine, so
    the fix in `defaults` also applies to dead letters. No policy only observes, so bad records remain.
    """
    found = policies_of(config, settings)
    rejecting: dict[str, Any] = {"mode": None}
    if fix is not None:
        rejecting["fix"] = None
    defaults = replace(found.defaults, mode=None, fix=fix or found.defaults.fix)
    topics = tuple(replace(topic, quarantine=None, **rejecting) for topic in found.topics)
    return replace(found, defaults=defaults, topics=topics)
