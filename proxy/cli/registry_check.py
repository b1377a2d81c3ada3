"""`sluicegate check --registry`, which compiles the newest schema of each subject that rules or sensitive fields can
meet.
"""

from collections.abc import Iterator

from sluicegate.config.model import Config
from sluicegate.proxy.cli.console import end, print_line
from sluicegate.proxy.registry.survey import SurveyResult, Surveys


def end_if_unusable(config: Config) -> None:
    """Print how many schemas of each registry can be used.

    The command ends if other schemas cannot be used or were not checked.
    """
    problems: list[str] = []
    for surveyed in Surveys(config).survey_all():
        print_line(f"registry {surveyed.registry}: the newest schemas of {surveyed.usable} subjects can be used")
        for words in surveyed.passed_over:
            print_line(f"registry {surveyed.registry}: {words}")
        problems += _problems_of(surveyed)
    for problem in problems:
        print_line(problem, err=True)
    if problems:
        end([f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'} in registries (--registry)"])


def _problems_of(surveyed: SurveyResult) -> Iterator[str]:
    for unusable in surveyed.unusable:
        yield f"registry {surveyed.registry}: {unusable}"
    for words in surveyed.missing_tags:
        yield f"registry {surveyed.registry}: {words}"
    if surveyed.failure:
        yield surveyed.failure
    if surveyed.unchecked:
        yield f"registry {surveyed.registry}: {surveyed.unchecked} subjects were not checked"
