"""The options of commands that send requests to the admin addresses of running proxies."""

from pathlib import Path
from typing import Annotated

import typer

from sluicegate.config.values.address import HostPort, parse_host_port
from sluicegate.config.values.password import Password, PasswordUnreadable
from sluicegate.proxy.cli.console import end

DEFAULT_ADMIN = "127.0.0.1:9650"
USAGE = 2

TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="A file with the admin token of the proxy (admin.token_file)."),
]
Admin = Annotated[
    list[str] | None,
    typer.Option(
        "--admin", metavar="HOST:PORT", help=f"Admin address of a proxy. May be repeated. Default: {DEFAULT_ADMIN}."
    ),
]


def addresses_of(admin: list[str] | None) -> list[HostPort]:
    """Return the given admin addresses, or the default address. An invalid address ends the command."""
    return [_address(text) for text in admin or (DEFAULT_ADMIN,)]


def token_in(file: Path | None) -> str | None:
    """Return the token in a file, or None without a file. An unreadable file ends the command."""
    if file is None:
        return None
    try:
        return Password("--token-file", None, str(file)).get()
    except PasswordUnreadable as error:
        end([f"sluicegate: {error}"], USAGE)


def _address(text: str) -> HostPort:
    try:
        return parse_host_port(text.removeprefix("http://").rstrip("/"))
    except ValueError as error:
        end([f"sluicegate: {text}: {error}"], USAGE)
