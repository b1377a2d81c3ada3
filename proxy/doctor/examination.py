"""The whole examination, in the order in which a table tells it: this machine, the cluster, what both make of it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from sluicegate.config.model import Config
from sluicegate.protocol.errors import SenderError
from sluicegate.proxy.cluster.all_topics import SeenTopic, all_topics
from sluicegate.proxy.cluster.broker_client import NoBrokerAnswers
from sluicegate.proxy.cluster.topic_questions import QuestionsFailed, ask_many_topics
from sluicegate.proxy.doctor import advertised, brokers, clocks, files, local_limits, logins, names, ports, topics
from sluicegate.proxy.doctor.finding import Finding, Level
from sluicegate.proxy.network.tls.contexts import BadTlsFiles, TlsContext, context_for_brokers

_MOST_COMPLAINTS = 5


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
    found = [*files.findings(config), *logins.findings(config), *local_limits.findings(config.limits)]
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
        upstream = replace(config.upstream, bootstrap=tuple(seen.let_in))
        inside = replace(config, upstream=upstream)
        found.append(await clocks.finding(upstream, tls, seen.let_in[0]))
        found += [finding async for finding in _of_topics(inside, tls)]
    else:
        for about in ("clock", "permissions", "topic limits"):
            found.append(
                Finding(about, Level.UNSEEN, "no broker lets the proxy ask", "mend what is said of the brokers")
            )
    return Examined(tuple(found), bool(seen.answering))


async def _of_topics(config: Config, tls: TlsContext | None) -> AsyncIterator[Finding]:
    try:
        shown = [topic for topic in await all_topics(config.upstream, tls) if not topic.is_internal]
    except (NoBrokerAnswers, SenderError) as error:
        yield Finding("topics", Level.UNSEEN, str(error), "ask again")
        return
    for finding in topics.permissions(config, shown):
        yield finding
    if len(shown) > topics.MOST_TOPICS:
        said = f"of {len(shown)} topics the first {topics.MOST_TOPICS} by name are compared"
        yield Finding("topic limits", Level.NOTE, said)
    async for finding in _limits(config, tls, shown[: topics.MOST_TOPICS]):
        yield finding


async def _limits(config: Config, tls: TlsContext | None, shown: list[SeenTopic]) -> AsyncIterator[Finding]:
    names_of_all = [topic.name for topic in shown]
    try:
        told = await ask_many_topics(config.upstream, tls, names_of_all) if shown else None
    except QuestionsFailed as error:
        yield Finding("topic limits", Level.UNSEEN, str(error), "allow the proxy's login DESCRIBE_CONFIGS on topics")
        return
    if told is not None:
        for complaint in list(told.complaints.values())[:_MOST_COMPLAINTS]:
            yield Finding("topic limits", Level.UNSEEN, complaint)
        for finding in topics.differences(config, told.settings):
            yield finding
    for finding in topics.unused_entries(config, names_of_all):
        yield finding
