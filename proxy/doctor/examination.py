"""The whole examination, in the order in which a table tells it: this machine, the cluster, what both make of it."""

from dataclasses import dataclass, replace

from sluicegate.config.model import Config
from sluicegate.proxy.doctor import advertised, brokers, names, ports
from sluicegate.proxy.doctor.checks import Cluster, cluster_checks, machine_checks
from sluicegate.proxy.doctor.finding import Finding, Level
from sluicegate.proxy.network.tls.contexts import BadTlsFiles, context_for_brokers


@dataclass(frozen=True, slots=True)
class Examined:
    """Everything that was found. `saw_cluster`: whether any broker answered, without which most cannot be seen."""

    findings: tuple[Finding, ...]
    saw_cluster: bool

    @property
    def exit_code(self) -> int:
        """For scripts: 0, 1 where something must be mended, 2 where the cluster could not be looked at."""
        if not self.saw_cluster:
            return 2
        return 1 if any(finding.level is Level.FAULT for finding in self.findings) else 0


async def examine(config: Config) -> Examined:
    """Looks only: nothing is written anywhere, and ports are bound for a moment."""
    found = [finding for check in machine_checks() for finding in check.findings(config)]
    try:
        tls = context_for_brokers(config.upstream.tls) if config.upstream.tls is not None else None
    except BadTlsFiles:
        found.append(Finding("cluster", Level.UNSEEN, "not asked: upstream.tls cannot be used", "mend that first"))
        return Examined(tuple(found), saw_cluster=False)
    seen = await brokers.look(config.upstream, tls)
    found += await names.findings(config, seen.brokers.values())
    reached = await advertised.look(config, seen.brokers)
    found += ports.findings(config, seen.brokers, reached.running)
    found += reached.findings
    found += seen.findings
    if seen.let_in:
        inside = replace(config, upstream=replace(config.upstream, bootstrap=tuple(seen.let_in)))
        cluster = Cluster(inside, tls, seen.let_in[0])
        for check in cluster_checks():
            found += [finding async for finding in check.findings(cluster)]
    else:
        advice = "mend what is said of the brokers"
        for about in (about for check in cluster_checks() for about in check.about):
            found.append(Finding(about, Level.UNSEEN, "no broker lets the proxy ask", advice))
    return Examined(tuple(found), bool(seen.answering))
