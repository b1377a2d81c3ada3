"""`sluicegate check --cluster`, which compares the configuration with the topics of the cluster, as `doctor` does."""

from sluicegate.config.loading import Loaded
from sluicegate.proxy.cli.console import end, print_line
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.checks import CheckedCluster
from sluicegate.proxy.doctor.topics import check_topics
from sluicegate.proxy.network.tls.contexts import context_for_brokers


def warn_about_cluster(loaded: Loaded) -> int:
    """Print each result, and return the number of warnings. A failure or an unreachable cluster ends the command."""
    import uvloop

    results = uvloop.run(_check(loaded))
    for result in results:
        if result.level is not Level.FAILURE and result.level is not Level.NOT_CHECKED:
            print_line(f"{result.level.value}: {_text_of(result)}")
    not_checked = [f"not checked: {_text_of(each)}" for each in results if each.level is Level.NOT_CHECKED]
    failures = [_text_of(each) for each in results if each.level is Level.FAILURE]
    if failures or not_checked:
        end([*failures, *not_checked])
    return sum(result.level is Level.WARNING for result in results)


async def _check(loaded: Loaded) -> list[CheckResult]:
    upstream = loaded.config.upstream
    tls = context_for_brokers(upstream.tls) if upstream.tls is not None else None
    cluster = CheckedCluster(loaded.config, tls, upstream.bootstrap[0], loaded.source)
    return [result async for result in check_topics(cluster)]


def _text_of(result: CheckResult) -> str:
    return f"{result.about}: {result.found}{f'; {result.advice}' if result.advice else ''}"
