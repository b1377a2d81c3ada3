"""The command `fleet`, which serves the web UI of many proxies. It imports its own dependencies."""

import socket
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from signal import SIGINT, SIGTERM, signal
from threading import Event
from typing import Annotated

import typer

from sluicegate.config.values.address import HostPort, parse_host_port
from sluicegate.config.values.password import Password, PasswordUnreadable
from sluicegate.proxy.cli.console import HELP, end, print_lines

_LISTEN = "127.0.0.1:9660"
_ADMIN_PORT = 9650
_BEAT_SECONDS = 1.0
_CERTIFICATE_BEATS = 30
_USAGE = 2

commands = typer.Typer()


@commands.command(context_settings=HELP)
def fleet(
    proxies: Annotated[
        str | None, typer.Option("--proxies", metavar="HOST:PORT,…", help="Admin addresses of the proxies.")
    ] = None,
    dns: Annotated[
        str | None,
        typer.Option(
            "--dns", metavar="NAME[:PORT]", help="A DNS name that resolves to the proxies. Looked up every 30 s."
        ),
    ] = None,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address for browsers.")] = _LISTEN,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="A file with the token that browsers must send."),
    ] = None,
    proxy_token_file: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy-token-file",
            metavar="[HOST:PORT=]FILE",
            help="A file with one proxy's token or, without HOST:PORT, with the token of all other "
            "proxies. May be repeated.",
        ),
    ] = None,
    tls_certificate: Annotated[
        Path | None,
        typer.Option("--tls-certificate", metavar="FILE", help="The certificate chain for browsers, in PEM."),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="The private key of the certificate, in PEM.")
    ] = None,
    admin: Annotated[
        str | None,
        typer.Option(
            "--admin",
            metavar="HOST:PORT",
            help=(
                "Print all proxies of a cluster once, instead of serving a web UI. One proxy, which needs state.topic, "
                "provides the list."
            ),
        ),
    ] = None,
) -> None:
    """Serve one web UI for many proxies, with their totals and the state of each. It changes nothing. Ctrl-C ends it.

    The command reads only from the proxies named here. Without --token-file it listens on this machine only.
    """
    if admin is not None:
        _print_fleet(_address(admin, "--admin"), _Tokens(proxy_token_file or ()))
        return
    if (proxies is None) == (dns is None):
        raise typer.BadParameter("specify --proxies HOST:PORT,… or --dns NAME")
    if (tls_certificate is None) != (tls_key is None):
        raise typer.BadParameter("--tls-certificate and --tls-key must be given together")
    from sluicegate.proxy.admin.endpoint import AdminServer
    from sluicegate.proxy.network.listeners import CannotListen
    from sluicegate.proxy.network.tls.contexts import BadTlsFiles, context_for_fleet
    from sluicegate.proxy.status.condition import Condition
    from sluicegate.proxy.status.status import Status
    from sluicegate.proxy.watching.fleet import Fleet
    from sluicegate.proxy.watching.fleet_metrics import fleet_metrics
    from sluicegate.proxy.webui.access import Access, is_loopback
    from sluicegate.proxy.webui.site import Site

    address = _address(listen, "--listen")
    if token_file is None and not is_loopback(address.host):
        end(
            [f"sluicegate fleet: other machines can reach {address}: specify --token-file, or listen on 127.0.0.1"],
            _USAGE,
        )
    token = None if token_file is None else Password("--token-file", None, str(token_file))
    tokens = _Tokens(proxy_token_file or ())
    find = _given(proxies) if proxies is not None else _resolved(str(dns))
    try:
        for each in (*tokens.files, *([] if token is None else [token])):
            each.get()
        tls = None if tls_certificate is None else context_for_fleet(str(tls_certificate), str(tls_key))
    except (PasswordUnreadable, BadTlsFiles) as error:
        end([f"sluicegate fleet: {error}"], _USAGE)
    seen = Fleet(find, tokens.of)
    status = Status()
    status.end(Condition.STARTING)
    site = Site(Access(address, token), seen.live_state, seen.explain, read_reloads=seen.policy_changes)
    try:
        server = AdminServer(
            address, partial(fleet_metrics, seen), status, lambda: site, None if tls is None else tls.current
        )
    except CannotListen as error:
        end([f"sluicegate fleet: cannot listen on {error}; {error.advice}"])
    stop = Event()
    for number in (SIGINT, SIGTERM):
        signal(number, lambda *_: stop.set())
    beats = 0
    while not stop.wait(_BEAT_SECONDS):
        status.beat()
        beats += 1
        if tls is not None and beats % _CERTIFICATE_BEATS == 0:
            tls.follow()
    server.close()
    seen.close()


def _print_fleet(address: HostPort, tokens: "_Tokens") -> None:
    """Print all proxies of the cluster of the proxy at this admin address."""
    from sluicegate.proxy.watching.admin_client import StateUnavailable, read_fleet
    from sluicegate.proxy.watching.fleet_listing import lines_of

    try:
        print_lines(lines_of(read_fleet(address, tokens.of(address))))
    except (StateUnavailable, PasswordUnreadable) as error:
        end([f"sluicegate fleet: {address}: {error}"])


class _Tokens:
    """The token for each proxy, which is read from its file each time, so that a new token takes effect at once."""

    def __init__(self, given: Sequence[str]) -> None:
        self._of: dict[HostPort | None, Password] = {}
        for text in given:
            proxy, equals, file = text.partition("=")
            address = _address(proxy, "--proxy-token-file") if equals else None
            self._of[address] = Password("--proxy-token-file", None, file if equals else text)

    @property
    def files(self) -> list[Password]:
        return list(self._of.values())

    def of(self, proxy: HostPort) -> str | None:
        """Return the token for a proxy, or None if there is none. Raises PasswordUnreadable."""
        found = self._of.get(proxy) or self._of.get(None)
        return None if found is None else found.get()


def _given(text: str) -> Callable[[], list[HostPort]]:
    addresses = [_address(part.strip(), "--proxies") for part in text.split(",") if part.strip()]
    if not addresses:
        raise typer.BadParameter("--proxies names no address")
    return lambda: addresses


def _resolved(text: str) -> Callable[[], list[HostPort]]:
    name = text if text.rpartition(":")[2].isdigit() and ":" in text else f"{text}:{_ADMIN_PORT}"
    address = _address(name, "--dns")

    def resolve() -> list[HostPort]:
        found = socket.getaddrinfo(address.host, address.port, 0, socket.SOCK_STREAM)
        return [HostPort(host, address.port) for host in sorted({str(peer[0]) for *_, peer in found})]

    return resolve


def _address(text: str, option: str) -> HostPort:
    try:
        return parse_host_port(text.removeprefix("http://").rstrip("/"))
    except ValueError as error:
        end([f"sluicegate fleet: {option}: {text}: {error}"], _USAGE)
