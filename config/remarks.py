"""Returns warnings and hints about valid configurations."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from sluicegate.config.bounds_in_seconds import probable_seconds
from sluicegate.config.files.source import Path, Source, printable
from sluicegate.config.keys import each_key_of
from sluicegate.config.model import Config
from sluicegate.config.teams import Floor
from sluicegate.config.topics import STRICTNESS_OF_FRAMING, STRICTNESS_OF_MODE, Topic, TopicKeys
from sluicegate.config.values.glob_cover import covers, is_within, literal_prefix, probably_intended_glob
from sluicegate.config.values.topic_pattern import exact_name_of, is_for_every_principal

_LOGIN = "User:"
_OF_A_CERTIFICATE = re.compile("User:[A-Za-z0-9.]+=")
UNDECLARED = (
    "listen does not declare how the brokers derive principals from logins: the principals of all SASL clients are "
    "unverified, and no exemption matches them"
)
DECLARE = (
    "Set listen.user_name_is_principal if the brokers take the user names of PLAIN or SCRAM as principals; for "
    "OAUTHBEARER set listen.sasl.oauthbearer.sub.claim.name, or listen.oauth.username.claim if the brokers use "
    "Strimzi's login handler"
)
_ATTRIBUTES = {key.name: key.attribute for key in each_key_of(Topic)}
_WITHOUT_EFFECT = "is never applied: mode: observe forwards batches unchanged. Write mode: reject in"
_DEPRECATED = "message.timestamp.difference.max.ms"
# The maximum number of patterns with the same prefix to compare, and the maximum length of a prefix.
_MAX_COMPARED, _MAX_BEGINNING = 100, 249
_MOST_STATEMENTS = 50


def warnings_of(config: Config, source: Source) -> Iterator[str]:
    """Yield the probable mistakes."""
    sections: list[tuple[Path, Any]] = [(("defaults",), config.defaults)]
    sections += [(("topics", i), topic) for i, topic in enumerate(config.topics)]
    for path, keys in sections:
        if keys.difference_max_ms is not None:
            key = (*path, _DEPRECATED)
            yield _message(
                source,
                key,
                "is deprecated (KIP-937); it sets message.timestamp.before.max.ms and "
                "message.timestamp.after.max.ms if they are missing. Set those.",
            )
        if keys.rules and (keys.checks or config.defaults.checks) == "none":
            yield _message(
                source, (*path, "rules"), "are never evaluated: checks: none forwards all batches unvalidated"
            )
        inert = [name for name in ("fix", "enforce") if getattr(keys, name) is not None]
        for name in inert if _is_observed(config, path, keys) else ():
            yield _message(source, (*path, name), f"{_WITHOUT_EFFECT} {_section_to_enforce(path, source)}")
        if keys.samples and not config.violations.has_destination:
            yield _message(
                source,
                (*path, "samples"),
                "affects only `sluicegate dead-letters`: without violations.file and violations.topic, no event has "
                "samples",
            )
    for path, words in probable_seconds(config, source):
        yield _message(source, path, words)
    yield from _below_the_floor(config, source)
    yield from _shadowed(config, source)
    yield from _shadowed_quotas(config, source)
    yield from _taken_ports(config, source)
    yield from _own_addresses(config, source)
    yield from _impossible_principals(config, source)
    named = named_principal(config)
    is_mapped = config.listen.principal_mapping_rules is not None  # the pattern may mean a certificate's principal
    if named is not None and not config.listen.declares_principals and not is_mapped:
        yield _message(source, named, f"depends on a principal, and {UNDECLARED}. {DECLARE}")


def _section_to_enforce(path: Path, source: Source) -> str:
    """Return the sections in which the key at `path` needs `mode: reject`."""
    return "defaults, or in the entries of topics that need it" if path == ("defaults",) else source.key_of(path)


def _below_the_floor(config: Config, source: Source) -> Iterator[str]:
    """Yield a warning for each key in an entry of `topics` that is weaker than the floor of all the entry's topics."""
    for i, topic in enumerate(config.topics) if config.floor else ():
        place = next((k for k, floor in enumerate(config.floor) if is_within(topic.match, [floor.match])), None)
        floor = None if place is None else config.floor[place]
        if floor is None or floor == Floor(match=floor.match):
            continue
        mode = floor.mode or config.defaults.mode or "reject"
        framing = floor.framing or config.defaults.framing or "safe"
        bounds_times = floor.before_max_ms is not None or floor.after_max_ms is not None
        weaker = {
            "message.timestamp.type": topic.timestamp_type == "LogAppendTime" and bounds_times,
            "message.timestamp.before.max.ms": _is_above(topic.before_max_ms, floor.before_max_ms),
            "message.timestamp.after.max.ms": _is_above(topic.after_max_ms, floor.after_max_ms),
            "max.message.bytes": _is_above(topic.max_message_bytes, floor.max_message_bytes),
            "checks": topic.checks == "none",
            "mode": topic.mode is not None and STRICTNESS_OF_MODE[topic.mode] < STRICTNESS_OF_MODE[mode],
            "framing": topic.framing is not None
            and STRICTNESS_OF_FRAMING[topic.framing] < STRICTNESS_OF_FRAMING[framing],
        }
        for key in [key for key, is_weaker in weaker.items() if is_weaker]:
            path = ("topics", i, key)
            given = getattr(topic, _ATTRIBUTES[key])
            where = source.place_of(("floor", place or 0))
            words = f"{given} is weaker than floor[{place}] ({where}), which applies instead; omit the key"
            yield _message(source, path, words)


def _is_above(bound: int | None, floor: int | None) -> bool:
    return bound is not None and floor is not None and bound > floor


def _is_observed(config: Config, path: Path, keys: TopicKeys) -> bool:
    """Return whether no topic in the section can be in mode reject."""
    if path == ("defaults",):
        return keys.mode == "observe" and all(topic.mode != "reject" for topic in config.topics)
    return (keys.mode or config.defaults.mode) == "observe"


def _impossible_principals(config: Config, source: Source) -> Iterator[str]:
    """Yield a warning for each pattern that matches no principal because principals begin with `User:`."""
    for path, pattern in _principals(config):
        begins = literal_prefix(pattern)
        if begins and not _LOGIN.startswith(begins) and not begins.startswith(_LOGIN):
            words = f'{pattern} matches no client: principals begin with {_LOGIN}; write principal: "{_LOGIN}{pattern}"'
            yield _message(source, path, words)


def _principals(config: Config) -> Iterator[tuple[Path, str]]:
    """Yield the pattern of each policy that names principals."""
    patterns: list[tuple[Path, str | None]] = [
        *((("exempt", i, "principal"), each.principal) for i, each in enumerate(config.exempt)),
        *((("requests", i, "match", "principal"), each.match.principal) for i, each in enumerate(config.requests)),
        *((("quotas", i, "principal"), each.principal) for i, each in enumerate(config.quotas)),
        *((("client_owners", i, "principal"), each.principal) for i, each in enumerate(config.client_owners)),
    ]
    yield from ((path, pattern) for path, pattern in patterns if pattern is not None)


def named_principal(config: Config) -> Path | None:
    """Return the key of the first policy that depends on a login's principal, or None."""
    for i, exemption in enumerate(config.exempt):
        if exemption.principal is not None and _may_be_a_login(exemption.principal):
            return "exempt", i, "principal"
    for i, rule in enumerate(config.requests):
        pattern = rule.match.principal
        if pattern is not None and _may_be_a_login(pattern) and not is_for_every_principal(pattern):
            return "requests", i, "match", "principal"
    for i, quota in enumerate(config.quotas):
        if quota.principal is not None and _may_be_a_login(quota.principal):
            return "quotas", i, "principal"
    for path, keys in config.sections_with_rules():
        for i, each in enumerate(keys.rules or ()):
            if each.names_principals:
                return (*path, "rules", i, "cel")
    for i, owned in enumerate(config.client_owners):
        if owned.principal is not None and _may_be_a_login(owned.principal):
            return "client_owners", i, "principal"
    return None


def _may_be_a_login(pattern: str) -> bool:
    """Return whether the pattern can match a SASL login.

    A certificate's principal, in contrast, begins with an attribute (`User:CN=...`).
    """
    begins = literal_prefix(pattern)
    return _LOGIN.startswith(begins) or (begins.startswith(_LOGIN) and _OF_A_CERTIFICATE.match(begins) is None)


def hints_of(config: Config, source: Source) -> Iterator[str]:
    """Yield hints for common misunderstandings."""
    for i, topic in enumerate(config.topics):
        meant = probably_intended_glob(topic.match)
        if meant is not None:
            stem = meant[:-1]
            yield _message(
                source,
                ("topics", i, "match"),
                f"{topic.match} is a glob, in which a dot is a literal dot: it matches {stem}.a, not {stem}-a. "
                f"If both are meant, write {meant}",
            )
    yield from _unchecked_statements(source)


def _unchecked_statements(source: Source) -> Iterator[str]:
    """Yield the statements in contracts that nothing checks."""
    statements = (
        f"{each.place}: contract of {contract.topic}: not checked: {each}"
        for contract in source.contracts.values()
        for each in contract.unchecked
    )
    yield from map(printable, islice(statements, _MOST_STATEMENTS))
    more = sum(1 for _ in statements)
    if more:
        yield f"{more} more statements of contracts are not checked; sluicegate contract import FILE lists those of one"


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
            yield _message(
                source,
                ("topics", i, "match"),
                f"{match} never decides: {key} ({matches[first]}, {where}) matches the same topics, and the "
                "first match wins. Put the narrower pattern first",
            )
            continue
        same[match] = i
        if exact_name_of(match) is None:
            wide.setdefault(literal_prefix(match), []).append(i)


def _shadowed_quotas(config: Config, source: Source) -> Iterator[str]:
    """Yield a warning for each topic quota that follows one for the same topics."""
    before: list[tuple[int, str]] = []
    for i, quota in enumerate(config.quotas):
        topic = quota.topic
        if topic is None:
            continue
        first = next(((k, match) for k, match in before if covers(match, topic)), None)
        if first is None:
            before = [*before, (i, topic)][:_MAX_COMPARED]
            continue
        path = ("quotas", first[0])
        words = f"({first[1]}, {source.place_of(path)}) matches the same topics, and the first quota applies"
        yield _message(source, ("quotas", i), f"{quota.name} never applies: {source.key_of(path)} {words}")


def _taken_ports(config: Config, source: Source) -> Iterator[str]:
    """Yield warnings about ports that are configured twice."""
    admin, listen = config.admin.listen, config.listen
    if listen.broker_host is None and (node_id := listen.broker_at(listen.bootstrap.port, _NEAR)) is not None:
        words = f"is the port that broker {node_id} would get (listen.broker_port_base): clients cannot reach it"
        yield _message(source, ("listen", "bootstrap"), words)
    if admin is None or admin.port == 0 or listen.bootstrap.port == 0:
        return
    if not (admin.host == listen.bootstrap.host or admin.is_wildcard or listen.bootstrap.is_wildcard):
        return
    if admin.port == listen.bootstrap.port:
        yield _message(source, ("admin", "listen"), "is also the port of listen.bootstrap: only one of them can listen")
    elif listen.broker_host is None and (node_id := listen.broker_at(admin.port, _NEAR)) is not None:
        yield _message(
            source, ("admin", "listen"), f"is the port that broker {node_id} would get (listen.broker_port_base)"
        )


_NEAR = 100


def _own_addresses(config: Config, source: Source) -> Iterator[str]:
    """Yield a warning for each broker address that is an address of this proxy."""
    for i, broker in enumerate(config.upstream.bootstrap):
        if broker == config.listen.bootstrap:
            yield _message(
                source, ("upstream", "bootstrap", i), "is listen.bootstrap, this proxy itself: name a broker"
            )


def _message(source: Source, path: Path, text: str) -> str:
    return printable(f"{source.place_of(path)}: {source.key_of(path)} {text}")
