"""Provides Spark jobs for Kafka topics: profile, audit, repair, replay, watch and others, with the proxy's rules.

    from sluicegate.pipeline import audit, profile, with_event_time

A name is imported when it is first used, because most names require Spark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluicegate.pipeline.api import audit, plan_repair, plan_replay, profile, repair, replay, verify, watch
    from sluicegate.pipeline.functions import diagnose, in_bounds, register_functions, unit_of
    from sluicegate.pipeline.jobs.audit.job import Audit
    from sluicegate.pipeline.jobs.extract import with_event_time
    from sluicegate.pipeline.jobs.extract.extractors import (
        FailOnInvalidTimestamp,
        InvalidTimestamp,
        LogAndSkipOnInvalidTimestamp,
        TimestampExtractor,
        TooLate,
        UsePreviousTimeOnInvalidTimestamp,
        WallclockTimestampExtractor,
    )
    from sluicegate.pipeline.jobs.profile.job import Profile
    from sluicegate.pipeline.jobs.repair.job import Repair
    from sluicegate.pipeline.jobs.repair.settings import Retention
    from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, ReplayRecord
    from sluicegate.pipeline.jobs.replay.job import Replay
    from sluicegate.pipeline.jobs.replay.writing import Headers
    from sluicegate.pipeline.jobs.verify.job import Verification
    from sluicegate.pipeline.jobs.watch.outcome import Watched
    from sluicegate.pipeline.kafka.cluster import TopicTrouble
    from sluicegate.pipeline.kafka.connection import BrokerUnreachable, ClusterLoginRejected
    from sluicegate.pipeline.runs.argument_checks import BadParameter
    from sluicegate.pipeline.runs.errors import PipelineError
    from sluicegate.pipeline.source.datasource import TopicSource

__all__ = [
    "Audit",
    "BadParameter",
    "BrokerUnreachable",
    "ClusterLoginRejected",
    "DeadLetter",
    "FailOnInvalidTimestamp",
    "Headers",
    "InvalidTimestamp",
    "LogAndSkipOnInvalidTimestamp",
    "PipelineError",
    "Profile",
    "Repair",
    "Replay",
    "ReplayRecord",
    "Retention",
    "TimestampExtractor",
    "TooLate",
    "TopicSource",
    "TopicTrouble",
    "UsePreviousTimeOnInvalidTimestamp",
    "Verification",
    "WallclockTimestampExtractor",
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
    "BadParameter": "runs.argument_checks",
    "BrokerUnreachable": "kafka.connection",
    "DeadLetter": "jobs.replay.dead_letter",
    "FailOnInvalidTimestamp": "jobs.extract.extractors",
    "Headers": "jobs.replay.writing",
    "InvalidTimestamp": "jobs.extract.extractors",
    "LogAndSkipOnInvalidTimestamp": "jobs.extract.extractors",
    "ClusterLoginRejected": "kafka.connection",
    "PipelineError": "runs.errors",
    "Profile": "jobs.profile.job",
    "ReplayRecord": "jobs.replay.dead_letter",
    "Repair": "jobs.repair.job",
    "Replay": "jobs.replay.job",
    "Retention": "jobs.repair.settings",
    "TimestampExtractor": "jobs.extract.extractors",
    "TooLate": "jobs.extract.extractors",
    "TopicSource": "source.datasource",
    "TopicTrouble": "kafka.cluster",
    "UsePreviousTimeOnInvalidTimestamp": "jobs.extract.extractors",
    "Verification": "jobs.verify.job",
    "WallclockTimestampExtractor": "jobs.extract.extractors",
    "Watched": "jobs.watch.outcome",
    "audit": "api",
    "diagnose": "functions",
    "in_bounds": "functions",
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
    """Import the module that defines the name (PEP 562)."""
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
