"""The commands for authors of policies, from `explain` to `schema`. Each imports its own dependencies."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluicegate.config.loading import ConfigError, Loaded
from sluicegate.proxy.cli.console import HELP, end, print_line, print_lines, read_checked

if TYPE_CHECKING:
    from sluicegate.proxy.cluster.topics import SettingsRead
    from sluicegate.proxy.state.settings_table import SettingsTable

_USAGE = 2

_File = Annotated[Path, typer.Argument(metavar="FILE", help="The configuration file.")]

_Offline = Annotated[
    bool, typer.Option("--offline", help="Use only the file, without the topic's settings on the cluster.")
]

commands = typer.Typer()


@commands.command(context_settings=HELP)
def explain(
    file: _File,
    topic: Annotated[list[str], typer.Argument(metavar="TOPIC", help="Name of a topic. May be repeated.")],
    offline: _Offline = False,
) -> None:
    """Print the policy of a topic. Each setting has its source: a file and a line, or a setting of the cluster."""
    from sluicegate.proxy.reload.topic_explanation import explain as lines_about

    loaded = read_checked(file)
    cluster = _Cluster(loaded, offline)
    for name in topic:
        print_lines(lines_about(name, loaded, cluster.settings))
        cluster.report_unknown("explain", name)


@commands.command(name="try", context_settings=HELP)
def try_one(
    file: _File,
    topic: Annotated[str, typer.Option(metavar="NAME", help="Topic of the record.")],
    key: Annotated[str | None, typer.Option(metavar="TEXT", help="Key of the record. Default: null.")] = None,
    value: Annotated[str | None, typer.Option(metavar="TEXT", help="Value of the record. Default: null.")] = None,
    value_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with the value of the record, or - for standard input.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Header of the record. May be repeated; the order is significant."),
    ] = None,
    timestamp: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Timestamp of the record: milliseconds, 2026-11-22T10:00:00Z, now, now+1h or now-7d."
        ),
    ] = "now",
    client_id: Annotated[
        str, typer.Option(metavar="NAME", help="Client id of the producer. Default: no client id.")
    ] = "",
    offline: _Offline = False,
) -> None:
    """Validate one record as the proxy does. Exit status: 0 if the record is forwarded, 1 if it is rejected."""
    from sluicegate.proxy.cli.record_input import BadGivenRecord, given_record
    from sluicegate.proxy.cli.try_record import validate_one
    from sluicegate.proxy.server.clock import now_ms

    loaded = read_checked(file, _USAGE)
    now = now_ms()
    try:
        most = loaded.config.limits.max_frame_bytes
        record = given_record(key, value, value_file, header or (), timestamp, now, most)
    except BadGivenRecord as error:
        end([f"sluicegate try: {error}"], _USAGE)
    cluster = _Cluster(loaded, offline)
    trial = validate_one(topic, record, loaded, now, cluster.settings, client_id)
    print_lines(trial.lines)
    cluster.report_unknown("try", topic)
    raise typer.Exit(0 if trial.is_forwarded else 1)


class _Cluster:
    """The cluster, which a command asks once for each topic, or never if `offline`."""

    def __init__(self, loaded: Loaded, offline: bool) -> None:
        self._loaded = loaded
        self._offline = offline
        self._read: dict[str, SettingsRead] = {}
        self._shared: SettingsTable | None = None

    def settings(self, topic: str) -> "SettingsRead":
        """Return the cluster's settings for a topic, as a running proxy reads them."""
        from sluicegate.proxy.cluster.topics import read_settings_now
        from sluicegate.proxy.reload.topic_explanation import NOT_ASKED

        if topic not in self._read:
            read = NOT_ASKED if self._offline else read_settings_now(self._loaded.config.upstream, topic)
            its = None if self._offline else self._shared_settings().of(topic)
            self._read[topic] = read if its is None else replace(read, shared=its.values)
        return self._read[topic]

    def _shared_settings(self) -> "SettingsTable":
        """Return the topic settings that the proxies share. Prints to standard error why they cannot be read."""
        from sluicegate.proxy.state.settings_now import read_settings_table
        from sluicegate.proxy.state.settings_table import NO_SETTINGS
        from sluicegate.proxy.state.topic_description import TopicUnavailable
        from sluicegate.proxy.writing.topic_writer import ClientMissing, check_client

        state, upstream = self._loaded.config.state, self._loaded.config.upstream
        if self._shared is None:
            self._shared = NO_SETTINGS
            try:
                if state is not None:
                    check_client("state.topic")
                    self._shared = read_settings_table(upstream, state.topic)
            except (TopicUnavailable, ClientMissing) as error:
                print_line(f"sluicegate: the topic settings of sluicegate are not shown: {error}", err=True)
        return self._shared

    def report_unknown(self, command: str, topic: str) -> None:
        """Print to standard error that no policy and no cluster has the topic, with similar names."""
        from sluicegate.protocol.topic_name import is_legal_topic_name
        from sluicegate.proxy.cluster.topics import ListedNames, list_names_now
        from sluicegate.proxy.reload.known_topics import KnownTopics
        from sluicegate.proxy.reload.topic_explanation import NOT_ASKED

        def listed(name: str | None) -> ListedNames:
            if self._offline:
                return ListedNames(reason=NOT_ASKED.reason)
            return list_names_now(self._loaded.config.upstream, name)

        if is_legal_topic_name(topic) and self.settings(topic).settings is None:
            doubt = KnownTopics(lambda: self._loaded, tuple, listed).doubt(topic)
            if doubt is not None:
                print_line(f"sluicegate {command}: {doubt}", err=True)


@commands.command(context_settings=HELP)
def test(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH", help="A file of test cases, or a folder with *.test.yaml files.")
    ],
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The configuration for all test cases, instead of the one that each file names."
        ),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the results to this file as JUnit XML.")
    ] = None,
) -> None:
    """Run test cases of policies, without a cluster. Exit status: 0 if all pass, 1 if one fails, 2 if
    none can be run.
    """
    from sluicegate.proxy.cli.policy_cases import case_files
    from sluicegate.proxy.cli.policy_test_report import lines_of, write_junit
    from sluicegate.proxy.cli.policy_tests import CaseRunner

    files = case_files(paths)
    if not files:
        end([f"sluicegate test: no *.test.yaml in {', '.join(map(str, paths))}"], _USAGE)
    runner = CaseRunner(config)
    try:
        results = [runner.run(file) for file in files]
    except ConfigError as error:
        end([str(problem) for problem in error.problems], _USAGE)
    if not any(file.results for file in results):
        end(["sluicegate test: the files have no cases"], _USAGE)
    print_lines(lines_of(results))
    if junit is not None:
        try:
            write_junit(results, junit)
        except OSError as error:
            end([f"sluicegate test: --junit: {junit} cannot be written: {error.strerror}"], _USAGE)
    raise typer.Exit(1 if any(result.problems for file in results for result in file.results) else 0)


@commands.command(context_settings=HELP)
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The configuration file before the change.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The configuration file after the change.")],
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a policy becomes looser. For CI.")] = False,
) -> None:
    """Compare the policies of two configurations: print each topic whose policy becomes stricter or looser, and how."""
    from sluicegate.proxy.reload.policy_changes import ProducerEffect, changes_between, counts_of

    changes = list(changes_between(read_checked(old, _USAGE), read_checked(new, _USAGE)))
    print_lines(map(str, changes))
    print_lines([counts_of(changes)])
    raise typer.Exit(1 if strict and any(change.effect is ProducerEffect.LOOSER for change in changes) else 0)


@commands.command(context_settings=HELP)
def schema(
    topic_files: Annotated[
        bool, typer.Option("--topic-files", help="Print the schema of the files that topic_files names.")
    ] = False,
) -> None:
    """Print the JSON Schema of the configuration file, with which editors complete and check it."""
    from sluicegate.config.reference.json_schema import schema_of_file, schema_of_topic_files

    for line in json.dumps(schema_of_topic_files() if topic_files else schema_of_file(), indent=2).splitlines():
        typer.echo(line)
