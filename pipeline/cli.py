"""The command `sluicegate-spark`: one job a subcommand; what each asks for stands in its job's folder."""

import typer

from sluicegate.pipeline.jobs.advise.command import advise
from sluicegate.pipeline.jobs.audit.command import audit
from sluicegate.pipeline.jobs.extract.command import extract
from sluicegate.pipeline.jobs.profile.command import profile
from sluicegate.pipeline.jobs.repair.command import repair
from sluicegate.pipeline.jobs.replay.command import replay
from sluicegate.pipeline.jobs.verify.command import verify
from sluicegate.pipeline.jobs.violations.command import violations
from sluicegate.pipeline.jobs.watch.command import watch

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Profile, audit and repair Kafka topics with Spark, by sluicegate's rules.",
)

for _job in (profile, advise, audit, violations, extract, repair, verify, replay, watch):
    app.command()(_job)


def main() -> None:
    """The entry point."""
    app()
