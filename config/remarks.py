"""What a configuration says that can be used and is still worth a word."""

from collections.abc import Iterator
from typing import Any

from sluicegate.config.glob_cover import beginning, covers, misses_dashes
from sluicegate.config.model import Config
from sluicegate.config.source import Path, Source, printable
from sluicegate.config.topic_pattern import exact_name_of

_DEPRECATED = "message.timestamp.difference.max.ms"
# Patterns of one beginning that others are held against, and how long a beginning is looked for.
_MAX_COMPARED, _MAX_BEGINNING = 100, 249


def warnings_of(config: Config, source: Source) -> Iterator[str]:
    """What is probably a mistake."""
    sections: list[tuple[Path, Any]] = [(("defaults",), config.defaults)]
    sections += [(("topics", i), topic) for i, topic in enumerate(config.topics)]
    for path, keys in sections:
        if keys.difference_max_ms is not None:
            key = (*path, _DEPRECATED)
            yield _said(
                source,
                key,
                "is deprecated (KIP-937); it stands for each of message.timestamp.before.max.ms and "
                "message.timestamp.after.max.ms that is not set. Set those.",
            )
        if keys.rules and (keys.checks or config.defaults.checks) == "none":
            yield _said(source, (*path, "rules"), "are never asked: checks: none leaves all batches to the broker")
        if keys.samples and not config.violations.is_anywhere:
            yield _said(
                source, (*path, "samples"), "is in no event: neither violations.file nor violations.topic is set"
            )
    yield from _shadowed(config, source)
    yield from _taken_ports(config, source)


def hints_of(config: Config, source: Source) -> Iterator[str]:
    """What is often misunderstood."""
    for i, topic in enumerate(config.topics):
        meant = misses_dashes(topic.match)
        if meant is not None:
            stem = meant[:-1]
            yield _said(
                source,
                ("topics", i, "match"),
                f"{topic.match} is a glob, whose dot is a dot: it matches {stem}.a, not {stem}-a. "
                f"If both are meant, write {meant}",
            )


def _shadowed(config: Config, source: Source) -> Iterator[str]:
    same: dict[str, int] = {}
    wide: dict[str, list[int]] = {}
    matches = [topic.match for topic in config.topics]
    for i, match in enumerate(matches):
        begins = (match[:length] for length in range(min(len(match), _MAX_BEGINNING) + 1))
        before = (k for begin in begins for k in wide.get(begin, ())[:_MAX_COMPARED])
        first = same[match] if match in same else next((k for k in before if covers(matches[k], match)), None)
        if first is not None:
            where, key = source.place_of(("topics", first, "match")), source.key_of(("topics", first))
            yield _said(
                source,
                ("topics", i, "match"),
                f"{match} never decides: {key} ({matches[first]}, {where}) matches the same topics, and the "
                "first match wins. Put the narrower pattern first",
            )
            continue
        same[match] = i
        if exact_name_of(match) is None:
            wide.setdefault(beginning(match), []).append(i)


def _taken_ports(config: Config, source: Source) -> Iterator[str]:
    """Ports that would be wanted twice on one machine."""
    admin, listen = config.admin.listen, config.listen
    if admin is None or admin.port == 0 or listen.bootstrap.port == 0:
        return
    if not (admin.host == listen.bootstrap.host or admin.is_wildcard or listen.bootstrap.is_wildcard):
        return
    if admin.port == listen.bootstrap.port:
        yield _said(source, ("admin", "listen"), "is the port of listen.bootstrap: the second to start cannot have it")
    elif listen.broker_host is None and 0 <= (node_id := admin.port - listen.port_of(0)) < _NEAR:
        yield _said(source, ("admin", "listen"), f"is the port that broker {node_id} would get (listen.broker_ports)")


_NEAR = 100


def _said(source: Source, path: Path, words: str) -> str:
    return printable(f"{source.place_of(path)}: {source.key_of(path)} {words}")
