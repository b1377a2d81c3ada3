"""Spark over topics as they are: profile, audit and repair, by the rules that the proxy judges with.

    from sluicegate.pipeline import judge, profile, with_event_time

What is named here is imported when somebody asks for it: it needs Spark, and who imports one module of the pipeline
needs no others. Some functions have the name of a folder, which import would put in their place as soon as anything in
that folder is imported; so names are looked up by the package's class, which stands above what import sets.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluicegate.pipeline.extract import with_event_time
    from sluicegate.pipeline.functions import diagnose, in_bounds, register_functions, unit_of
    from sluicegate.pipeline.jobs import judge, plan_repair, plan_replay, profile, repair, replay, verify, watch
    from sluicegate.pipeline.judge.outcome import Judgement
    from sluicegate.pipeline.profile.outcome import Profile
    from sluicegate.pipeline.repair.outcome import Repair
    from sluicegate.pipeline.replay.outcome import Replay
    from sluicegate.pipeline.source.datasource import TopicSource
    from sluicegate.pipeline.verify.outcome import Verification
    from sluicegate.pipeline.watch.outcome import Watched

__all__ = [
    "Judgement",
    "Profile",
    "Repair",
    "Replay",
    "TopicSource",
    "Verification",
    "Watched",
    "diagnose",
    "in_bounds",
    "judge",
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
    "Judgement": "judge.outcome",
    "Profile": "profile.outcome",
    "Repair": "repair.outcome",
    "Replay": "replay.outcome",
    "TopicSource": "source.datasource",
    "Verification": "verify.outcome",
    "Watched": "watch.outcome",
    "diagnose": "functions",
    "in_bounds": "functions",
    "judge": "jobs",
    "plan_repair": "jobs",
    "plan_replay": "jobs",
    "profile": "jobs",
    "register_functions": "functions",
    "repair": "jobs",
    "replay": "jobs",
    "unit_of": "functions",
    "verify": "jobs",
    "watch": "jobs",
    "with_event_time": "extract",
}


class _Named:
    """A name of the package, by the module that has it."""

    def __init__(self, name: str, module: str) -> None:
        self._name = name
        self._module = module

    def __get__(self, package: ModuleType | None, owner: type) -> Any:
        return getattr(import_module(f"{__name__}.{self._module}"), self._name)

    def __set__(self, package: ModuleType, folder: ModuleType) -> None:
        """Import does, for a folder of that name; `from sluicegate.pipeline.profile import …` does not need it."""


class _Package(ModuleType):
    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *__all__})


for _name, _module in _MODULES.items():
    setattr(_Package, _name, _Named(_name, _module))
sys.modules[__name__].__class__ = _Package
