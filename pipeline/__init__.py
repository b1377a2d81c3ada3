"""Spark over topics as they are: profile, audit and repair, by the rules that the proxy validates with.

    from sluicegate.pipeline import audit, profile, with_event_time

A name is imported when it is first used: it needs Spark, which a program that imports one module may do without.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluicegate.pipeline.api import audit, plan_repair, plan_replay, profile, repair, replay, verify, watch
    from sluicegate.pipeline.functions import diagnose, in_bounds, register_functions, unit_of
    from sluicegate.pipeline.jobs.audit.job import Audit
    from sluicegate.pipeline.jobs.extract import with_event_time
    from sluicegate.pipeline.jobs.profile.job import Profile
    from sluicegate.pipeline.jobs.repair.job import Repair
    from sluicegate.pipeline.jobs.replay.job import Replay
    from sluicegate.pipeline.jobs.verify.job import Verification
    from sluicegate.pipeline.jobs.watch.outcome import Watched
    from sluicegate.pipeline.source.datasource import TopicSource

__all__ = [
    "Audit",
    "Profile",
    "Repair",
    "Replay",
    "TopicSource",
    "Verification",
    "Watched",
    "audit",
    "diagnose",
    "in_bounds",
    "plan_repair",
    "plan_replay",
    "profile",
    "register_functions",
    "repair",
    "replay",
    "unit_of",
    "verify",
    "watch",
    "with_event_time",
]
_MODULES = {
    "Audit": "jobs.audit.job",
    "Profile": "jobs.profile.job",
    "Repair": "jobs.repair.job",
    "Replay": "jobs.replay.job",
    "TopicSource": "source.datasource",
    "Verification": "jobs.verify.job",
    "Watched": "jobs.watch.outcome",
    "diagnose": "functions",
    "in_bounds": "functions",
    "audit": "api",
    "plan_repair": "api",
    "plan_replay": "api",
    "profile": "api",
    "register_functions": "functions",
    "repair": "api",
    "replay": "api",
    "unit_of": "functions",
    "verify": "api",
    "watch": "api",
    "with_event_time": "jobs.extract",
}


def __getattr__(name: str) -> Any:
    """Import the module that has this name (PEP 562)."""
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
