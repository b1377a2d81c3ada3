"""The policies that dead letters are corrected and validated by: those of the proxy's file, where what is bad is
rejected.

A topic that is quarantined has no fix, because only what is rejected is kept. At a replay it is not quarantined, so
what
`defaults` say of it holds: their fix is for dead letters too. And nothing is only observed: what is bad stays.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sluicegate.config.model import Config
from sluicegate.config.topics import Fix
from sluicegate.pipeline.jobs.audit.policies import Policies, policies_of
from sluicegate.validation.cluster_settings import ClusterSettings


def replay_policies(config: Config, settings: Mapping[str, ClusterSettings], fix: Fix | None) -> Policies:
    """`fix` stands in the place of all that the file has, unless it is None."""
    found = policies_of(config, settings)
    rejecting: dict[str, Any] = {"mode": None}
    if fix is not None:
        rejecting["fix"] = None
    defaults = replace(found.defaults, mode=None, fix=fix or found.defaults.fix)
    topics = tuple(replace(topic, quarantine=None, **rejecting) for topic in found.topics)
    return replace(found, defaults=defaults, topics=topics)
