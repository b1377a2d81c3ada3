"""The commands `sluicegate dead-letters`. Each imports its own dependencies."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from sluicegate.proxy.cli.console import HELP, end, print_lines
from sluicegate.proxy.cli.dead_letter_access import (
    USAGE,
    Bootstrap,
    ClientConfig,
    ConfigOption,
    Dimension,
    desk,
    records_of,
)

if TYPE_CHECKING:
    from sluicegate.dead_letters.cluster import Cluster

_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic of dead letters.")]

dead_letters = typer.Typer(no_args_is_help=True, context_settings=HELP, help="Find and group dead letters.")


@dead_letters.command(name="list", context_settings=HELP)
def list_topics(
    config: ConfigOption = None,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="NAME", help="Look only at this topic. May be repeated. Default: all topics."),
    ] = None,
    sample: Annotated[
        int, typer.Option("--sample", metavar="NUMBER", min=1, help="The newest records to read of each topic.")
    ] = 100,
    as_json: _AsJson = False,
) -> None:
    """List the topics with dead letters. The headers of their newest records decide."""
    from sluicegate.dead_letters.survey import topics_with_letters
    from sluicegate.proxy.cli.dead_letter_tables import survey_json, survey_lines

    with desk(config, bootstrap, client_config) as opened:
        names = opened.cluster.topics()
        if topic is not None:
            names = {name: _partitions(opened.cluster, name) for name in topic}
        found = list(topics_with_letters(opened.cluster, names, sample))
        if as_json:
            typer.echo(json.dumps(survey_json(found, opened)))
        else:
            print_lines(survey_lines(found, opened))


@dead_letters.command(context_settings=HELP)
def show(
    topic: _Topic,
    config: ConfigOption = None,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    by: Annotated[Dimension, typer.Option("--by", help="What to group the letters by.")] = Dimension.CAUSE,
    as_json: _AsJson = False,
) -> None:
    """Group the dead letters of a topic by their cause, or by another dimension.

    The beginnings of one record of each group are shown if the policy of its original topic has `samples`, and its
    value is masked if that policy has `sensitive`.
    """
    from sluicegate.dead_letters.formats import read_letter
    from sluicegate.dead_letters.groups import Groups
    from sluicegate.proxy.cli.dead_letter_tables import counts_lines, groups_json, groups_lines

    with desk(config, bootstrap, client_config) as opened:
        groups, others = Groups(), 0
        for record in records_of(opened.cluster, topic, _partitions(opened.cluster, topic)):
            letter = read_letter(record)
            if letter is None:
                others += 1
            else:
                groups.add(letter)
        found = groups.ordered()
        if as_json:
            typer.echo(json.dumps(groups_json(topic, found, others, opened)))
        elif by is Dimension.CAUSE:
            print_lines(groups_lines(topic, found, others, opened))
        else:
            print_lines(counts_lines(topic, found, by, opened))


def _partitions(cluster: "Cluster", topic: str) -> int:
    partitions = cluster.topics().get(topic)
    if partitions is None:
        end([f"sluicegate dead-letters: there is no topic {topic} that this login may read"], USAGE)
    return partitions
