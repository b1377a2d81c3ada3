"""The command `sluicegate-spark`: one subcommand for each job."""

import sys

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

_RENAMED = {"judge": "audit"}


app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Profile, audit and repair Kafka topics with Spark, by sluicegate's rules.",
)

for _job in (profile, advise, audit, violations, extract, repair, verify, replay, watch):
    app.command()(_job)


def main() -> None:
    """Run the command. The old name of a command is an error that gives the new one."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name in _RENAMED:
        sys.stderr.write(f"sluicegate-spark: unknown command {name!r}: use {_RENAMED[name]!r}\n")
        sys.exit(2)
    app()
