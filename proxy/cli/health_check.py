"""Requests /livez from a running proxy at admin.listen, for a container's health check."""

from collections.abc import Mapping
from http.client import OK, HTTPException
from pathlib import Path
from time import monotonic

from sluicegate.config.files.source import Source
from sluicegate.config.files.yaml_source import read_file
from sluicegate.config.loading import ConfigError, load
from sluicegate.config.model import Admin
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.network.http_client import LookUpLimits, http_failure_message, response_to

_SECONDS = 2.0
_MOST_BYTES = 1 << 20
_NEEDED = {"upstream": {"bootstrap": "unused:1"}, "listen": {"bootstrap": "unused:1"}}
_THIS_MACHINE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # compared with, never bound


def admin_of(file: Path | None, environment: Mapping[str, str]) -> Admin:
    """Return the admin section of the configuration file and the environment.

    The file need not exist. Raises ConfigError.
    """
    source = read_file(file) if file is not None and file.exists() else Source("environment")
    if not source.readable:
        raise ConfigError(source.problems)
    admin = source.data.get("admin")
    data = {**_NEEDED, **({"admin": admin} if admin is not None else {})}
    own = {name: value for name, value in environment.items() if name.startswith("SLUICEGATE__ADMIN")}
    return load(Source(source.name, data, source.places), own).config.admin


def problem_at(address: HostPort) -> str | None:
    """Return why the proxy at this admin address is not alive, or None if it is."""
    host = _THIS_MACHINE.get(address.host, address.host)
    bounds = LookUpLimits(monotonic() + _SECONDS, _MOST_BYTES)
    try:
        with response_to("GET", f"http://{HostPort(host, address.port)}/livez", bounds, {}) as response:
            text = response.read(1000).decode(errors="replace").strip()
    except (OSError, HTTPException) as error:
        return f"{address}: {http_failure_message(error, _SECONDS)}"
    return None if response.status == OK else f"{address}: {response.status} {text}"
