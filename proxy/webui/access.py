"""Decides which clients may see the web UI: this machine, or clients with the token.

/metrics, /livez and /readyz are always open. Without a configured token, only this machine may see the web UI. Even
then, a foreign web page could make a local browser request it in two ways. One is a DNS name that resolves to this
machine (DNS rebinding), which the Host header reveals. The other is a cross-site request, which Sec-Fetch-Site reveals.
Browsers hide the responses to such requests, because no CORS header is sent.
"""

import hmac
from collections.abc import Mapping
from ipaddress import ip_address

from sluicegate.config.values.address import HostPort
from sluicegate.config.values.password import Password, PasswordUnreadable
from sluicegate.proxy.webui.responses import HttpResponse, text_response

_HERE = "localhost"
_SCHEME = "bearer "
_OWN_SITES = frozenset({"same-origin", "none"})
_MOST_CHARACTERS = 4096


def is_loopback(host: str) -> bool:
    """Return whether `host` can be reached only from this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == _HERE


class Access:
    """Decides by the listen address, and by the token if one is configured."""

    def __init__(self, listen: HostPort, token: Password | None) -> None:
        self._listen = listen
        self._token = token
        self._is_here = is_loopback(listen.host)

    def rejection_of_files(self, headers: Mapping[str, str]) -> HttpResponse | None:
        """Return the response that rejects a request for files, or None to allow it. Header names are in lower case."""
        if self._token is not None:
            return None
        if not self._is_here:
            return text_response(
                403,
                f"The web UI is disabled: other machines can reach admin.listen {self._listen}. Set "
                "admin.token_file, or set admin.listen to 127.0.0.1. /metrics, /livez and /readyz stay available.",
            )
        host = _host_in(headers.get("host", ""))
        if not (is_loopback(host) or host == self._listen.host):
            return text_response(
                403,
                "The web UI is not available under this name: without admin.token_file use 127.0.0.1, ::1 or "
                "localhost.",
            )
        return None

    def rejection_of_data(self, headers: Mapping[str, str]) -> HttpResponse | None:
        """Return the response that rejects a request for data, or None to allow it."""
        rejection = self.rejection_of_files(headers)
        if rejection is not None:
            return rejection
        if headers.get("sec-fetch-site", "none") not in _OWN_SITES:
            return text_response(403, "Other sites may not read this data.")
        if self._token is None:
            return None
        try:
            expected = self._token.get().encode()
        except PasswordUnreadable as error:
            return text_response(503, f"The token cannot be read: {error}")
        if hmac.compare_digest(_token_in(headers.get("authorization", "")), expected):
            return None
        return text_response(
            401,
            "Token required: send `Authorization: Bearer …` with the token of admin.token or admin.token_file, or of "
            "--token-file for `sluicegate fleet`.",
            ("WWW-Authenticate", 'Bearer realm="sluicegate"'),
        )

    def rejection_of_change(self, headers: Mapping[str, str]) -> HttpResponse | None:
        """Return the response that rejects a request for a change, or None to allow it. Changes require a token."""
        if self._token is None:
            return text_response(
                403, "Changes require a token: set admin.token_file, and send the token as `Authorization: Bearer …`."
            )
        return self.rejection_of_data(headers)


def _token_in(header: str) -> bytes:
    is_bearer = header[: len(_SCHEME)].lower() == _SCHEME
    return header[len(_SCHEME) :][:_MOST_CHARACTERS].strip().encode("latin-1", "replace") if is_bearer else b""


def _host_in(header: str) -> str:
    """Return the host without the port. An IPv6 address is returned without brackets."""
    if not header.startswith("["):
        return header.partition(":")[0]
    host, _, rest = header[1:].partition("]")
    return host if rest == "" or rest.startswith(":") else ""
