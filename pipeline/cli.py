"""The command `sluicegate-spark`: one job a subcommand; what each asks for stands in its job's folder."""

import typer

from sluicegate.pipeline.advise.command import advise
from sluicegate.pipeline.extract.command import extract
from sluicegate.pipeline.judge.command import judge
from sluicegate.pipeline.profile.command import profile
from sluicegate.pipeline.repair.command import repair
from sluicegate.pipeline.replay.command import replay
from sluicegate.pipeline.verify.command import verify
from sluicegate.pipeline.violations.command import violations
from sluicegate.pipeline.watch.command import watch

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Profile, audit and repair Kafka topics with Spark, by sluicegate's rules.",
)

for _job in (profile, advise, judge, violations, extract, repair, verify, replay, watch):
    app.command()(_job)


def main() -> None:
    """The entry point."""
    app()
