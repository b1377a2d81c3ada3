"""Checks that the proxy can bind its ports, by binding each of them for a moment."""

from collections.abc import Iterator, Mapping

from sluicegate.config.model import Config
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.network.listeners import MAX_BROKERS, CannotListen, bind


def is_free(address: HostPort) -> bool:
    """Return whether a proxy could listen at the address now."""
    return _why_not(address) is None


def check(config: Config, brokers: Mapping[int, HostPort], running: bool) -> Iterator[CheckResult]:
    """Yield a result for each port. `running` is true if a proxy with this configuration already listens."""
    listen = config.listen
    wanted = [("listen.bootstrap", listen.bootstrap)]
    if config.admin.listen is not None:
        wanted.append(("admin.listen", config.admin.listen))
    for node_id in sorted(brokers)[:MAX_BROKERS]:
        unavailable = config.why_no_client_address(node_id)
        if unavailable is not None:
            yield CheckResult("listen.broker_port_base", Level.FAILURE, *unavailable)
        elif listen.broker_host is None:
            wanted.append((f"port of broker {node_id}", HostPort(listen.bootstrap.host, listen.port_of(node_id))))
    for about, address in wanted:
        reason = _why_not(address) if address.port else None
        if reason is None:
            yield CheckResult(about, Level.OK, f"{address} is free")
        elif running:
            yield CheckResult(about, Level.OK, f"{address} is in use by a running proxy of this configuration")
        else:
            yield CheckResult(about, Level.FAILURE, f"cannot listen on {reason}", reason.advice)


def _why_not(address: HostPort) -> CannotListen | None:
    try:
        bind(address).close()
    except CannotListen as error:
        return error
    return None
