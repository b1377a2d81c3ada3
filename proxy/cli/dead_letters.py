"""The commands `sluicegate dead-letters`. Each imports its own dependencies."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluicegate.proxy.cli.console import HELP, end, print_lines
from sluicegate.proxy.cli.dead_letter_access import (
    USAGE,
    Bootstrap,
    ClientConfig,
    ConfigOption,
    Dimension,
    FixTime,
    PolicyConfig,
    RecordTime,
    TargetPartition,
    ToBootstrap,
    ToClientConfig,
    desk,
    open_target_cluster,
    records_of,
)
from sluicegate.proxy.cli.dead_letter_mapping import MapOption, mapping_of
from sluicegate.proxy.cli.dead_letter_repairs import FunctionOption, PatchOption, SchemaIdOption, repairs_of

if TYPE_CHECKING:
    from sluicegate.dead_letters.cluster import Cluster

_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic of dead letters.")]

dead_letters = typer.Typer(no_args_is_help=True, context_settings=HELP, help="Find, group and redrive dead letters.")


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
    mapped: MapOption = None,
    as_json: _AsJson = False,
) -> None:
    """List the topics with dead letters. The headers of their newest records decide."""
    with desk(config, bootstrap, client_config, mapping_of(mapped, "*")) as opened:
        from sluicegate.dead_letters.survey import topics_with_letters
        from sluicegate.proxy.cli.dead_letter_tables import survey_json, survey_lines

        names = opened.cluster.topics()
        if topic is not None:
            names = {name: _partitions(opened.cluster, name) for name in topic}
        found = list(topics_with_letters(opened.cluster, names, sample, opened.read_letter))
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
    mapped: MapOption = None,
    as_json: _AsJson = False,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Write the groups by cause to this HTML file, which loads nothing."
        ),
    ] = None,
) -> None:
    """Group the dead letters of a topic by their cause, or by another dimension.

    The beginnings of one record of each group are shown if the policy of its original topic has `samples`, and its
    value is masked if that policy has `sensitive`.
    """
    with desk(config, bootstrap, client_config, mapping_of(mapped, topic)) as opened:
        from sluicegate.dead_letters.groups import LetterGroups
        from sluicegate.proxy.cli.dead_letter_html import write_report
        from sluicegate.proxy.cli.dead_letter_tables import counts_lines, groups_json, groups_lines

        groups, others = LetterGroups(), 0
        for record in records_of(opened.cluster, topic, _partitions(opened.cluster, topic)):
            letter = opened.read_letter(record)
            if letter is None:
                others += 1
            else:
                groups.add(letter)
        found = groups.ordered()
        if html is not None:
            write_report(html, groups_json(topic, found, others, opened))
        if as_json:
            typer.echo(json.dumps(groups_json(topic, found, others, opened)))
        elif by is Dimension.CAUSE:
            print_lines(groups_lines(topic, found, others, opened))
        else:
            print_lines(counts_lines(topic, found, by, opened))


@dead_letters.command(context_settings=HELP)
def validate(
    topic: _Topic,
    config: PolicyConfig,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    time: Annotated[
        RecordTime,
        typer.Option("--time", help="The timestamp of each record: its original one, or the present time."),
    ] = RecordTime.RECORD,
    patch: PatchOption = None,
    repair: FunctionOption = None,
    schema_id: SchemaIdOption = None,
    as_json: _AsJson = False,
) -> None:
    """Validate the dead letters of a topic as a proxy would validate their records now.

    Prints how many are valid, and how many of the others would be valid after which correction of their timestamps,
    and after each of the given repairs.
    """
    with desk(config, bootstrap, client_config) as opened:
        from sluicegate.dead_letters.verdict_counts import VerdictCounts
        from sluicegate.proxy.cli.dead_letter_tables import verdicts_json, verdicts_lines
        from sluicegate.proxy.server.clock import now_ms

        counts = VerdictCounts(opened.validator(now_ms(), time), repairs_of(patch, repair, schema_id))
        for record in records_of(opened.cluster, topic, _partitions(opened.cluster, topic)):
            letter = opened.read_letter(record)
            if letter is not None:
                counts.add(letter)
        if as_json:
            typer.echo(json.dumps(verdicts_json(topic, counts)))
        else:
            print_lines(verdicts_lines(topic, counts))


@dead_letters.command(context_settings=HELP)
def redrive(
    topic: _Topic,
    config: PolicyConfig,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    group: Annotated[str | None, typer.Option("--group", metavar="ID", help="Only this group of `show`.")] = None,
    offsets: Annotated[
        str | None,
        typer.Option(
            "--offsets",
            metavar="RANGES",
            help="Only these offsets: PARTITION:FIRST-END, separated by commas, without the offset END.",
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only letters since this time, in ISO 8601.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Only letters before this time, in ISO 8601.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", metavar="TEXT", help="Only records with this key.")] = None,
    header: Annotated[
        str | None, typer.Option("--header", metavar="NAME=VALUE", help="Only records with this header of their own.")
    ] = None,
    time: Annotated[
        RecordTime, typer.Option("--time", help="The timestamp to write: the original one, or the present time.")
    ] = RecordTime.RECORD,
    fix: Annotated[
        FixTime | None,
        typer.Option("--fix", help="Correct timestamps that violate the policy. Default: its own `fix`."),
    ] = None,
    patch: PatchOption = None,
    repair: FunctionOption = None,
    schema_id: SchemaIdOption = None,
    partition: Annotated[
        TargetPartition, typer.Option("--partition", help="The original partition, or that of the key.")
    ] = TargetPartition.SAME,
    max_attempts: Annotated[
        int, typer.Option("--max-attempts", min=1, help="Leave records that were redriven this often.")
    ] = 3,
    rate: Annotated[
        float | None, typer.Option("--rate", metavar="NUMBER", min=0.001, help="Most records per second.")
    ] = None,
    stop_after: Annotated[
        int | None, typer.Option("--stop-after", metavar="NUMBER", min=1, help="Stop after this many rejections.")
    ] = None,
    marks: Annotated[
        str, typer.Option("--marks", metavar="TOPIC", help="The compacted topic of marks. --apply creates it.")
    ] = "sluicegate-dead-letter-marks",
    to_bootstrap: ToBootstrap = None,
    to_client_config: ToClientConfig = None,
    at_least_once: Annotated[
        bool,
        typer.Option(
            "--at-least-once", help="Write without transactions. Required if the original topics are elsewhere."
        ),
    ] = False,
    apply: Annotated[
        str | None, typer.Option("--apply", metavar="DIGEST", help="Write the records of the plan with this digest.")
    ] = None,
    as_json: _AsJson = False,
) -> None:
    """Write dead letters back to their original topics. Without --apply nothing is written.

    Each record is written exactly once, or with --at-least-once possibly twice after a crash.

    Exit status: 0 if all records of the plan are written, 1 if one is rejected or the plan has changed, 2 if the
    cluster cannot be used.
    """
    with (
        desk(config, bootstrap, client_config) as opened,
        open_target_cluster(opened, config, to_bootstrap, to_client_config) as target,
    ):
        from sluicegate.dead_letters.redriving import Pace
        from sluicegate.proxy.cli.dead_letter_redrive import Asked, redrive_topic

        repairs = repairs_of(patch, repair, schema_id)
        asked = Asked(
            topic,
            group,
            offsets,
            since,
            until,
            key,
            header,
            time,
            fix,
            partition,
            max_attempts,
            marks,
            repairs,
            at_least_once,
        )
        _partitions(opened.cluster, topic)
        raise typer.Exit(redrive_topic(opened, target, asked, apply, Pace(rate, stop_after), as_json))


def _partitions(cluster: "Cluster", topic: str) -> int:
    partitions = cluster.topics().get(topic)
    if partitions is None:
        end([f"sluicegate dead-letters: there is no topic {topic} that this login may read"], USAGE)
    return partitions
