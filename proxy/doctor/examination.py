"""Runs all checks in the report's order: this machine, the listeners, the brokers, and the cluster's topics."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sluicegate.config.files.source import Source
from sluicegate.config.model import Config
from sluicegate.proxy.doctor import advertised, brokers, certificate_names, files, names, ports
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.checks import CheckedCluster, cluster_checks, machine_checks
from sluicegate.proxy.network.tls.certificates import Flaw
from sluicegate.proxy.network.tls.contexts import BadTlsFiles, context_for_brokers
from sluicegate.validation.origins import NOWHERE


@dataclass(frozen=True, slots=True)
class Examination:
    """All results. `saw_cluster` is true if any broker responded. Otherwise most checks do not run."""

    results: tuple[CheckResult, ...]
    saw_cluster: bool

    @property
    def exit_code(self) -> int:
        """The exit code: 0 without failures, 1 with failures, or 2 if the cluster could not be checked."""
        if not self.saw_cluster:
            return 2
        return 1 if any(result.level is Level.FAILURE for result in self.results) else 0


async def examine(config: Config, flaws: Iterable[Flaw] = (), source: Source = NOWHERE) -> Examination:
    """Run all checks. Write nothing, and bind ports only briefly.

    `flaws` is the result of `sluicegate check` for the files that the configuration names. `source` maps the
    configuration's keys to their places in the file.
    """
    found = [files.result_of(flaw) for flaw in flaws]
    found += [result for check in machine_checks() for result in check.run(config)]
    try:
        tls = context_for_brokers(config.upstream.tls) if config.upstream.tls is not None else None
    except BadTlsFiles:
        found.append(CheckResult("cluster", Level.NOT_CHECKED, "upstream.tls cannot be used"))
        return Examination(tuple(found), saw_cluster=False)
    seen = await brokers.survey_brokers(config.upstream, tls)
    found += await names.check(config, seen.brokers.values())
    found += certificate_names.check(config, seen.brokers)
    checked = await advertised.check(config, seen.brokers)
    found += ports.check(config, seen.brokers, checked.running)
    found += checked.results
    found += seen.results
    if seen.let_in:
        inside = replace(config, upstream=replace(config.upstream, bootstrap=tuple(seen.let_in)))
        cluster = CheckedCluster(inside, tls, seen.let_in[0], source)
        for check in cluster_checks():
            found += [result async for result in check.run(cluster)]
    else:
        for about in (about for check in cluster_checks() for about in check.about):
            found.append(CheckResult(about, Level.NOT_CHECKED, "no broker accepts requests of the proxy"))
    return Examination(tuple(found), bool(seen.answering))
