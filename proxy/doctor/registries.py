"""Checks the newest schema of each subject that rules or sensitive fields can use."""

from collections.abc import Iterator

from sluicegate.config.model import Config
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.checks import MachineCheck
from sluicegate.proxy.registry.survey import SurveyResult, Surveys

_MOST_LISTED = 50
_ADVICE = "register a corrected version, or set the outcome for its records with on_schema_error"


def check(config: Config) -> Iterator[CheckResult]:
    """Yield each schema that cannot be used, and the number of usable schemas."""
    for surveyed in Surveys(config).survey_all():
        yield from _findings_of(surveyed)


def _findings_of(surveyed: SurveyResult) -> Iterator[CheckResult]:
    about = f"registries.{surveyed.registry}"
    for unusable in surveyed.unusable[:_MOST_LISTED]:
        yield CheckResult(about, Level.WARNING, str(unusable), _ADVICE)
    left_out = len(surveyed.unusable) - _MOST_LISTED
    if left_out > 0:
        yield CheckResult(
            about, Level.WARNING, f"{left_out} more schemas cannot be used", "sluicegate check --registry FILE"
        )
    for words in surveyed.missing_tags:
        yield CheckResult(
            about, Level.WARNING, words, "correct the tag in sensitive, or register a version that has the tag"
        )
    for words in surveyed.passed_over[:_MOST_LISTED]:
        yield CheckResult(about, Level.NOTE, words)
    if surveyed.failure:
        yield CheckResult(about, Level.FAILURE, surveyed.failure, "start the registry, or correct its section")
    elif surveyed.unchecked:
        yield CheckResult(about, Level.NOT_CHECKED, f"{surveyed.unchecked} subjects: the survey reached its limit")
    if surveyed.usable or surveyed.is_complete:
        yield CheckResult(about, Level.OK, f"the newest schemas of {surveyed.usable} subjects can be used")


CHECK = MachineCheck(15, check)
