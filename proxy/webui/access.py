"""Decides who may see the web UI: this machine, or holders of the token. /metrics, /livez and /readyz are always open.

Without a token the page is for this machine alone. A browser here could still be made to ask for it by somebody else's
page: under a name that leads to this machine (DNS rebinding, which the Host header tells), or across sites (which
browsers tell, and whose answers they show nobody without a header that is never sent).
"""

import hmac
from collections.abc import Mapping
from ipaddress import ip_address

from sluicegate.config.values.address import HostPort
from sluicegate.config.values.password import Password, PasswordUnreadable
from sluicegate.proxy.webui.response import Response, text_response

_HERE = "localhost"
_SCHEME = "bearer "
_OWN_SITES = frozenset({"same-origin", "none"})
_MOST_CHARACTERS = 4096


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == _HERE


class Access:
    """By where the endpoint listens, and the token if there is one."""

    def __init__(self, listen: HostPort, token: Password | None) -> None:
        self._listen = listen
        self._token = token
        self._is_here = is_loopback(listen.host)

    def rejection_of_files(self, headers: Mapping[str, str]) -> Response | None:
        """Why its files, which tell nothing of a proxy, are not shown; None: they are. `headers` are in lower case."""
        if self._token is not None:
            return None
        if not self._is_here:
            return text_response(
                403,
                f"The page is not shown: admin.listen is {self._listen}, which others can reach. Set admin.token_file "
                "(who looks needs what it holds), or let admin.listen be 127.0.0.1. "
                "/metrics, /livez and /readyz are answered as ever.",
            )
        host = _host_in(headers.get("host", ""))
        if not (is_loopback(host) or host == self._listen.host):
            return text_response(
                403,
                "The page is not shown under this name: without admin.token_file it is shown only as 127.0.0.1, ::1 "
                "or localhost.",
            )
        return None

    def rejection_of_data(self, headers: Mapping[str, str]) -> Response | None:
        """Why its figures are not shown; None: they are."""
        rejection = self.rejection_of_files(headers)
        if rejection is not None:
            return rejection
        if headers.get("sec-fetch-site", "none") not in _OWN_SITES:
            return text_response(403, "Figures are not shown to other sites.")
        if self._token is None:
            return None
        try:
            expected = self._token.get().encode()
        except PasswordUnreadable as error:
            return text_response(503, f"Nobody can be let in: {error}")
        if hmac.compare_digest(_token_in(headers.get("authorization", "")), expected):
            return None
        return text_response(
            401,
            "A token is needed: send `Authorization: Bearer …` with what admin.token or admin.token_file says.",
            ("WWW-Authenticate", 'Bearer realm="sluicegate"'),
        )


def _token_in(header: str) -> bytes:
    is_bearer = header[: len(_SCHEME)].lower() == _SCHEME
    return header[len(_SCHEME) :][:_MOST_CHARACTERS].strip().encode("latin-1", "replace") if is_bearer else b""


def _host_in(header: str) -> str:
    """Without a port, and IPv6 without brackets."""
    if not header.startswith("["):
        return header.partition(":")[0]
    host, _, behind = header[1:].partition("]")
    return host if behind == "" or behind.startswith(":") else ""
