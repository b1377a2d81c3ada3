"""The commands that show running proxies: `top` and `who`. Each imports its own dependencies."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sluicegate.config.values.address import HostPort, parse_host_port
from sluicegate.config.values.password import Password, PasswordUnreadable
from sluicegate.config.values.quantity import SECONDS
from sluicegate.proxy.cli.console import HELP, end, print_line, print_lines

_DEFAULT = "127.0.0.1:9650"
_EVERY_SECONDS = 1.0
_USAGE = 2

_TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="A file with the same token as the proxy's admin.token_file."),
]
_Admin = Annotated[
    list[str] | None,
    typer.Option("--admin", metavar="HOST:PORT", help=f"Admin address; may be repeated. Default: {_DEFAULT}."),
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

commands = typer.Typer()


@commands.command(context_settings=HELP)
def top(
    admin: Annotated[
        list[str] | None,
        typer.Argument(metavar="ADMIN", help=f"Admin addresses, HOST:PORT; default: {_DEFAULT}."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print once; exit 1 if no proxy responds.")] = False,
    as_json: _AsJson = False,
    token_file: _TokenFile = None,
) -> None:
    """Show running proxies live: traffic, clients with violations, topics, the last violations. Ctrl-C ends it."""
    from sluicegate.proxy.watching.admin_client import read_states

    addresses = [_address(text) for text in admin or (_DEFAULT,)]
    token = _token(token_file)
    if as_json:
        while True:
            responses = read_states(addresses, token)
            states = {str(response.address): response.state or {"not_shown": response.reason} for response in responses}
            typer.echo(json.dumps(states))
            if once:
                raise typer.Exit(0 if any(response.state is not None for response in responses) else 1)
            time.sleep(_EVERY_SECONDS)
    try:
        from rich.console import Console
        from rich.live import Live

        from sluicegate.proxy.watching.top_screen import screen
    except ModuleNotFoundError as error:
        end([f"sluicegate: top needs {error.name}: pip install 'sluicegate[top]', or use --json"])
    console = Console(highlight=False)
    responses = read_states(addresses, token)
    if once:
        console.print(screen(responses))
        raise typer.Exit(0 if any(response.state is not None for response in responses) else 1)
    try:
        with Live(screen(responses), console=console, screen=sys.stdout.isatty(), auto_refresh=False) as live:
            while True:
                time.sleep(_EVERY_SECONDS)
                live.update(screen(read_states(addresses, token)), refresh=True)
    except KeyboardInterrupt:
        raise typer.Exit from None


@commands.command(context_settings=HELP)
def who(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")],
    events: Annotated[
        list[Path] | None,
        typer.Option("--events", metavar="FILE", help="A file of violation events; may be repeated."),
    ] = None,
    admin: _Admin = None,
    as_json: _AsJson = False,
    token_file: _TokenFile = None,
) -> None:
    """List clients with violations in a topic: owner, rule, first and last time, count, example and diagnosis."""
    if events is not None and admin is not None:
        raise typer.BadParameter("give --events FILE or --admin HOST:PORT, not both")
    from sluicegate.proxy.watching.topic_violations import lines_about

    if events is not None:
        from sluicegate.proxy.watching.topic_violations import EventsUnreadable, TopicViolations

        reading = TopicViolations(topic)
        try:
            violation_groups = reading.read(events)
        except EventsUnreadable as error:
            end([f"sluicegate who: {error}"])
        if reading.skipped:
            print_line(f"skipped {reading.skipped} lines that are not violation events", err=True)
        if reading.other:
            print_line(f"{reading.other} more batches are from clients beyond the limit of listed clients", err=True)
    else:
        from sluicegate.proxy.live.merged_state import merged_state
        from sluicegate.proxy.watching.admin_client import read_states
        from sluicegate.proxy.watching.formatting import named

        responses = read_states([_address(text) for text in admin or (_DEFAULT,)], _token(token_file))
        for response in responses:
            if response.state is None:
                print_line(f"{response.address} does not respond: {response.reason}", err=True)
                continue
            for each in response.state["conditions"]:
                print_line(f"{response.address} {each['state']}: {named(each['detail'])}", err=True)
        states = [response.state for response in responses if response.state is not None]
        if not states:
            print_line("give a proxy's admin.listen as --admin, or a file of events as --events", err=True)
            raise typer.Exit(1)
        violation_groups = [group for group in merged_state(states)["violation_groups"] if group["topic"] == topic]
    if as_json:
        typer.echo(json.dumps(violation_groups))
    else:
        print_lines(lines_about(topic, violation_groups))


_SuspendedTopic = Annotated[str | None, typer.Argument(metavar="[TOPIC]", help="A topic's name.")]
_AllTopics = Annotated[bool, typer.Option("--all", help="All topics, instead of one.")]


@commands.command(context_settings=HELP)
def suspend(
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; shown wherever the status is shown.")],
    topic: _SuspendedTopic = None,
    all_topics: _AllTopics = False,
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="End time from now, as 30m or 2h; at most 7d.")
    ] = "30m",
    admin: _Admin = None,
    token_file: _TokenFile = None,
) -> None:
    """Suspend enforcement at once (break-glass): violations are reported, and every batch is forwarded.

    It ends by itself. Needs admin.token_file. A restart of a proxy ends it too.
    """
    from sluicegate.proxy.watching import admin_client

    _check_scope("suspend", topic, all_topics)
    try:
        seconds = max(1, round(SECONDS.read(duration)))
    except ValueError as error:
        end([f"sluicegate suspend: --for: {error}"], _USAGE)
    _change_each(admin, lambda address: admin_client.suspend(address, _token(token_file), topic, reason, seconds))


@commands.command(context_settings=HELP)
def resume(
    topic: _SuspendedTopic = None, all_topics: _AllTopics = False, admin: _Admin = None, token_file: _TokenFile = None
) -> None:
    """Resume enforcement that was suspended."""
    from sluicegate.proxy.watching import admin_client

    _check_scope("resume", topic, all_topics)
    _change_each(admin, lambda address: admin_client.resume(address, _token(token_file), topic))


def _check_scope(command: str, topic: str | None, all_topics: bool) -> None:
    """End the command unless it names exactly one topic or says --all."""
    if bool(topic) == all_topics or topic == "":
        end([f"sluicegate {command}: name one topic, or say --all for all topics"], _USAGE)


def _change_each(admin: list[str] | None, change: Callable[[HostPort], list[str]]) -> None:
    """Change each proxy, and report each; ends with 1 if one was not changed."""
    from sluicegate.proxy.watching.admin_client import StateUnavailable

    failed = False
    for address in [_address(text) for text in admin or (_DEFAULT,)]:
        try:
            active = change(address)
        except StateUnavailable as error:
            failed = True
            print_line(f"{address}: not changed: {error}", err=True)
        else:
            print_lines(f"{address}: {text}" for text in active or ["no enforcement is suspended"])
    if failed:
        raise typer.Exit(1)


def _address(text: str) -> HostPort:
    try:
        return parse_host_port(text.removeprefix("http://").rstrip("/"))
    except ValueError as error:
        end([f"sluicegate: {text}: {error}"], _USAGE)


def _token(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        return Password("--token-file", None, str(file)).get()
    except PasswordUnreadable as error:
        end([f"sluicegate: {error}"], _USAGE)
