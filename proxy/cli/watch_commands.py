"""The commands that show running proxies (`top`, `who` and `history`). Each imports its own dependencies."""

import json
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.cli.admin_options import DEFAULT_ADMIN, Admin, TokenFile, addresses_of, token_in
from sluicegate.proxy.cli.console import HELP, end, print_line, print_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import RenderableType

    from sluicegate.proxy.live.live_state import LiveState, ViolationGroupState

_EVERY_SECONDS = 1.0

_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

commands = typer.Typer()


@commands.command(context_settings=HELP)
def top(
    admin: Annotated[
        list[str] | None,
        typer.Argument(metavar="ADMIN", help=f"Admin addresses of proxies, HOST:PORT. Default: {DEFAULT_ADMIN}."),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Print the state once and exit. Exit with 1 if no proxy responds.")
    ] = False,
    fleet: Annotated[
        bool, typer.Option("--fleet", help="Show all proxies of the cluster. The proxy at ADMIN needs state.topic.")
    ] = False,
    as_json: _AsJson = False,
    token_file: TokenFile = None,
) -> None:
    """Show running proxies live: traffic, clients with violations, topics and the last violations. Ctrl-C ends it."""
    addresses = addresses_of(admin)
    token = token_in(token_file)
    read = partial(_all_of_cluster, addresses[0], token) if fleet else partial(_each_proxy, addresses, token)
    if as_json:
        while True:
            found = read()
            typer.echo(json.dumps(found.content))
            if once:
                raise typer.Exit(0 if found.is_known else 1)
            time.sleep(_EVERY_SECONDS)
    try:
        from rich.console import Console
        from rich.live import Live
    except ModuleNotFoundError as error:
        end([f"sluicegate: top needs {error.name}: pip install 'sluicegate[top]', or use --json"])
    console = Console(highlight=False)
    found = read()
    if once:
        console.print(found.screen())
        raise typer.Exit(0 if found.is_known else 1)
    try:
        with Live(found.screen(), console=console, screen=sys.stdout.isatty(), auto_refresh=False) as live:
            while True:
                time.sleep(_EVERY_SECONDS)
                live.update(read().screen(), refresh=True)
    except KeyboardInterrupt:
        raise typer.Exit from None


@dataclass(frozen=True, slots=True)
class _Watched:
    """The state that `top` shows, as JSON and as a screen. `is_known` is true if a proxy has responded."""

    content: object
    is_known: bool
    screen: "Callable[[], RenderableType]"


def _each_proxy(addresses: list[HostPort], token: str | None) -> _Watched:
    from sluicegate.proxy.watching.admin_client import read_states

    responses = read_states(addresses, token)

    def screen() -> "RenderableType":
        from sluicegate.proxy.watching.top_screen import top_screen

        return top_screen(responses)

    states = {str(response.address): response.state or {"not_shown": response.reason} for response in responses}
    return _Watched(states, any(response.state is not None for response in responses), screen)


def _all_of_cluster(address: HostPort, token: str | None) -> _Watched:
    from sluicegate.proxy.watching.admin_client import StateUnavailable, read_fleet

    try:
        found = read_fleet(address, token)
    except StateUnavailable as error:
        reason = f"{address}: {error}"
        return _Watched({"not_shown": reason}, False, lambda: reason)

    def screen() -> "RenderableType":
        from sluicegate.proxy.watching.fleet_screen import fleet_screen

        return fleet_screen(found)

    return _Watched(found, True, screen)


@commands.command(context_settings=HELP)
def who(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC", help="Name of the topic. With --days it may be omitted, which selects all topics."
        ),
    ] = None,
    events: Annotated[
        list[Path] | None,
        typer.Option("--events", metavar="FILE", help="A file of violation events. May be repeated."),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(
            "--days",
            metavar="NUMBER",
            help=(
                "List the violations of this many days at all proxies. The proxy at --admin reads them from "
                "violations.topic."
            ),
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="With --days: end of the period, in ISO 8601. Default: now."),
    ] = None,
    client: Annotated[
        str | None, typer.Option("--client", metavar="ID", help="With --days: only violations by this client id.")
    ] = None,
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner", metavar="TEAM", help="With --days: only violations whose topic or client has this owner."
        ),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option("--rule", metavar="NAME", help="With --days: only violations with this rule or reason."),
    ] = None,
    admin: Admin = None,
    as_json: _AsJson = False,
    token_file: TokenFile = None,
) -> None:
    """List clients with violations in a topic, with owner, rule, first and last time, count, example and diagnosis."""
    for other, option in ((admin, "--admin HOST:PORT"), (days, "--days NUMBER")):
        if events is not None and other is not None:
            raise typer.BadParameter(f"specify --events FILE or {option}, not both")
    if days is None and (topic is None or any(each is not None for each in (until, client, owner, rule))):
        raise typer.BadParameter(
            "specify a TOPIC, or use --days, which allows all topics, --until, --client, --owner and --rule"
        )
    if days is not None:
        given = {"topic": topic, "client": client, "owner": owner, "rule": rule, "until_ms": _time_ms(until)}
        query = {"days": f"{days:g}"} | {name: value for name, value in given.items() if value is not None}
        _print_recorded(addresses_of(admin)[0], token_in(token_file), query, as_json)
        return
    assert topic is not None
    violation_groups, known = _of_files(topic, events) if events is not None else _of_memory(topic, admin, token_file)
    if as_json:
        typer.echo(json.dumps(violation_groups))
        return
    from sluicegate.proxy.watching.topic_violations import lines_about

    print_lines(lines_about(topic, violation_groups, known))


def _of_files(topic: str, files: list[Path]) -> "tuple[Sequence[ViolationGroupState], str]":
    from sluicegate.proxy.watching.formatting import iso_time
    from sluicegate.proxy.watching.topic_violations import EventsUnreadable, read_files
    from sluicegate.proxy.watching.violation_counts import EventSelection, ViolationCounts

    counts = ViolationCounts(EventSelection(topic))
    try:
        read_files(counts, files)
    except EventsUnreadable as error:
        end([f"sluicegate who: {error}"])
    if counts.skipped:
        print_line(f"skipped {counts.skipped} lines that are not violation events", err=True)
    if counts.other:
        print_line(f"{counts.other} more batches are of clients beyond the limit of listed clients", err=True)
    since = "in event files without events" if counts.first_ms is None else f"since {iso_time(counts.first_ms)}"
    return counts.groups(), f"{since} (event files)" if counts.first_ms is not None else since


def _of_memory(
    topic: str, admin: list[str] | None, token_file: Path | None
) -> "tuple[Sequence[ViolationGroupState], str]":
    from sluicegate.proxy.watching.formatting import iso_time

    state, since_ms = _state_of_all(admin, token_file)
    violation_groups = [group for group in state["violation_groups"] if group["topic"] == topic]
    if not violation_groups:
        _report_unused(topic, [each["name"] for each in state["topics"] if each["name"] is not None])
    return violation_groups, f"since {iso_time(since_ms)} (memory only, since the start)"


def _print_recorded(address: HostPort, token: str | None, query: dict[str, str], as_json: bool) -> None:
    """Print the violations of the last days, topic by topic."""
    from sluicegate.proxy.watching.admin_client import StateUnavailable, read_violations
    from sluicegate.proxy.watching.recorded_listing import lines_of

    try:
        found = read_violations(address, token, query)
    except StateUnavailable as error:
        end([f"sluicegate who: {address}: {error}"])
    if as_json:
        typer.echo(json.dumps(found))
    else:
        print_lines(lines_of(found, query.get("topic")))


def _time_ms(text: str | None) -> str | None:
    """Return a time as Unix time in ms. A time without a zone is in UTC."""
    if text is None:
        return None
    try:
        time_of = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"--until: {text} is no ISO 8601 time") from None
    return str(round((time_of if time_of.tzinfo is not None else time_of.replace(tzinfo=UTC)).timestamp() * 1000))


@commands.command(context_settings=HELP)
def history(
    days: Annotated[float, typer.Option("--days", metavar="NUMBER", help="Number of past days to list.")] = 7,
    admin: Admin = None,
    as_json: _AsJson = False,
    token_file: TokenFile = None,
) -> None:
    """List the changes of policies and the suspensions of enforcement: by whom, when, and by which proxies they
    were applied.

    A proxy with state.topic knows the changes of all proxies of its cluster.
    """
    from sluicegate.proxy.watching.admin_client import StateUnavailable, read_changes
    from sluicegate.proxy.watching.change_history import lines_of

    address = addresses_of(admin)[0]
    try:
        found = read_changes(address, token_in(token_file), days)
    except StateUnavailable as error:
        end([f"sluicegate history: {address}: {error}"])
    if as_json:
        typer.echo(json.dumps(found))
    else:
        print_lines(lines_of(found))


def _state_of_all(admin: list[str] | None, token_file: Path | None) -> "tuple[LiveState, int]":
    """Return the merged state of the proxies, and the time (Unix time, ms) since when it covers all of them.

    Prints their conditions. The command ends if no proxy responds.
    """
    from sluicegate.proxy.live.merged_state import merged_state
    from sluicegate.proxy.watching.admin_client import read_states
    from sluicegate.proxy.watching.formatting import printable_name

    responses = read_states(addresses_of(admin), token_in(token_file))
    for response in responses:
        if response.state is None:
            print_line(f"{response.address} does not respond: {response.reason}", err=True)
            continue
        for each in response.state["conditions"]:
            print_line(f"{response.address} {each['state']}: {printable_name(each['detail'])}", err=True)
    states = [response.state for response in responses if response.state is not None]
    if not states:
        print_line("specify a proxy's admin.listen with --admin, or a file of events with --events", err=True)
        raise typer.Exit(1)
    return merged_state(states), max(state["since_ms"] for state in states)


def _report_unused(topic: str, used: list[str]) -> None:
    """Report that no client has used a topic, with similar names of topics that clients have used."""
    if topic not in used:
        near = get_close_matches(topic, used)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        print_line(f"no client has used the topic {topic} since these proxies started{meant}", err=True)
