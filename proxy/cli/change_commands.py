"""The commands that change what running proxies enforce (`suspend`, `resume` and `reload`)."""

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from sluicegate.config.values.address import HostPort
from sluicegate.config.values.quantity import SECONDS
from sluicegate.config.values.topic_pattern import exact_name_of
from sluicegate.proxy.cli.admin_options import USAGE, Admin, TokenFile, addresses_of, token_in
from sluicegate.proxy.cli.console import HELP, end, print_line, print_lines

commands = typer.Typer()

_SuspendedTopic = Annotated[
    str | None,
    typer.Argument(
        metavar="[TOPIC]", help="Name of a topic, or a pattern such as 'orders.*', as in `match` of a policy."
    ),
]
_Yes = Annotated[
    bool,
    typer.Option(
        "--yes", help="Change all topics that a pattern matches without asking. The command still lists them."
    ),
]
_AllTopics = Annotated[bool, typer.Option("--all", help="Apply to all topics.")]
_ThisProxy = Annotated[
    bool,
    typer.Option(
        "--this-proxy",
        help=(
            "Change only the proxies at --admin. Otherwise, with state.topic, the change applies to all proxies "
            "of the cluster."
        ),
    ),
]


@commands.command(context_settings=HELP)
def suspend(
    reason: Annotated[
        str,
        typer.Option("--reason", metavar="TEXT", help="Reason for the suspension, shown with the status of the proxy."),
    ],
    topic: _SuspendedTopic = None,
    all_topics: _AllTopics = False,
    duration: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="Duration, such as 30m or 2h, at most 7d.")
    ] = "30m",
    yes: _Yes = False,
    this_proxy: _ThisProxy = False,
    admin: Admin = None,
    token_file: TokenFile = None,
) -> None:
    """Suspend enforcement at once (break-glass): violations are reported, and every batch is forwarded.

    The suspension ends by itself. Requires admin.token_file. With state.topic, name one proxy: the suspension applies
    to all proxies of the cluster and survives restarts. Without state.topic, it applies to the proxies at --admin
    until they restart.
    """
    from sluicegate.proxy.watching import admin_client

    _check_scope("suspend", topic, all_topics)
    try:
        seconds = max(1, round(SECONDS.read(duration)))
    except ValueError as error:
        end([f"sluicegate suspend: --for: {error}"], USAGE)
    _confirm_pattern("suspend", topic, yes, admin, token_file, admin_client.SUSPEND)
    _change_each(
        admin,
        lambda address: admin_client.suspend(address, token_in(token_file), topic, reason, seconds, this_proxy),
    )


@commands.command(context_settings=HELP)
def resume(
    topic: _SuspendedTopic = None,
    all_topics: _AllTopics = False,
    yes: _Yes = False,
    this_proxy: _ThisProxy = False,
    admin: Admin = None,
    token_file: TokenFile = None,
) -> None:
    """Resume enforcement that was suspended."""
    from sluicegate.proxy.watching import admin_client

    _check_scope("resume", topic, all_topics)
    _confirm_pattern("resume", topic, yes, admin, token_file, admin_client.RESUME)
    _change_each(admin, lambda address: admin_client.resume(address, token_in(token_file), topic, this_proxy))


def _check_scope(command: str, topic: str | None, all_topics: bool) -> None:
    """End the command unless it names exactly one topic or has --all."""
    if bool(topic) == all_topics or topic == "":
        end([f"sluicegate {command}: name one topic, or use --all for all topics"], USAGE)


def _confirm_pattern(
    command: str, topic: str | None, yes: bool, admin: list[str] | None, token_file: TokenFile, path: str
) -> None:
    """List the topics that a pattern matches at each proxy, and ask for confirmation.

    The command ends unless the answer is yes. A plain name needs no confirmation.
    """
    if topic is None or exact_name_of(topic) is not None:
        return
    from sluicegate.proxy.watching.admin_client import StateUnavailable, topics_to_change

    for address in addresses_of(admin):
        try:
            topics = topics_to_change(address, token_in(token_file), path, topic)
        except StateUnavailable as error:
            end([f"{address}: no change was made: {error}"])
        print_lines([f"{address}: {topic} matches {len(topics)} topics:", *(f"  {each}" for each in topics)])
    if yes:
        return
    if not sys.stdin.isatty():
        end([f"sluicegate {command}: no change was made: confirm the topics with --yes"], USAGE)
    typer.confirm(f"{command} these topics?", abort=True)


def _change_each(admin: list[str] | None, change: Callable[[HostPort], list[str]]) -> None:
    """Change each proxy and report each result. The exit code is 1 if one proxy was not changed."""
    from sluicegate.proxy.watching.admin_client import StateUnavailable

    failed = False
    for address in addresses_of(admin):
        try:
            active = change(address)
        except StateUnavailable as error:
            failed = True
            print_line(f"{address}: not changed: {error}", err=True)
        else:
            print_lines(f"{address}: {text}" for text in active or ["enforcement is not suspended anywhere"])
    if failed:
        raise typer.Exit(1)


@commands.command(context_settings=HELP)
def reload(
    accept_removed: Annotated[
        bool,
        typer.Option(
            "--accept-removed",
            help=(
                "Also remove the policies of deleted files of topic_files and contracts. Otherwise these "
                "policies stay in force."
            ),
        ),
    ] = False,
    admin: Admin = None,
    token_file: TokenFile = None,
) -> None:
    """Reload the configuration now. If a proxy rejects it, print the errors and exit with 1.

    Requires admin.token_file. The proxy also reloads changed files without this command.
    """
    from sluicegate.proxy.watching import admin_client

    _change_each(admin, lambda address: admin_client.reload(address, token_in(token_file), accept_removed))
