"""`sluicegate check --cluster` compares the configuration with the topics of the cluster, as `doctor` does."""

from sluicegate.config.loading import Loaded
from sluicegate.proxy.cli.console import end, print_line
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.checks import CheckedCluster
from sluicegate.proxy.doctor.topics import findings_of_topics
from sluicegate.proxy.network.tls.contexts import context_for_brokers


def warn_about_cluster(loaded: Loaded) -> int:
    """Print each finding, and return how many are warnings. A failure, or an unreachable cluster, ends the command."""
    import uvloop

    findings = uvloop.run(_findings(loaded))
    for finding in findings:
        if finding.level is not Level.FAILURE and finding.level is not Level.NOT_CHECKED:
            print_line(f"{finding.level.value}: {_text_of(finding)}")
    not_checked = [f"not checked: {_text_of(each)}" for each in findings if each.level is Level.NOT_CHECKED]
    failures = [_text_of(each) for each in findings if each.level is Level.FAILURE]
    if failures or not_checked:
        end([*failures, *not_checked])
    return sum(finding.level is Level.WARNING for finding in findings)


async def _findings(loaded: Loaded) -> list[CheckResult]:
    upstream = loaded.config.upstream
    tls = context_for_brokers(upstream.tls) if upstream.tls is not None else None
    cluster = CheckedCluster(loaded.config, tls, upstream.bootstrap[0], loaded.source)
    return [finding async for finding in findings_of_topics(cluster)]


def _text_of(finding: CheckResult) -> str:
    return f"{finding.about}: {finding.found}{f'; {finding.advice}' if finding.advice else ''}"
