"""Compiles a configuration's keys to policies and to the initial rulebook."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from sluicegate.config.files.source import Path, Source
from sluicegate.config.keys import each_key_of
from sluicegate.config.model import Config
from sluicegate.config.quotas import Quota as QuotaKeys
from sluicegate.config.requests import Exempt
from sluicegate.config.requests import RequestRule as RequestKeys
from sluicegate.config.sensitive import SensitiveFields as SensitiveKeys
from sluicegate.config.teams import ClientOwner
from sluicegate.config.teams import Floor as FloorKeys
from sluicegate.config.topics import Enforce, Rehearse, Topic, TopicKeys
from sluicegate.config.topics import Fix as FixKeys
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.cluster_settings import AFTER_MAX, BEFORE_MAX, DIFFERENCE_MAX
from sluicegate.validation.floor import Floors
from sluicegate.validation.origins import NOWHERE, TOPIC_SETTINGS, PolicyOrigins, rule_paths
from sluicegate.validation.policy import (
    Framing,
    RehearsedBounds,
    TimeFix,
    TimestampType,
    TopicPolicy,
    ValidationLimits,
    bound_or_difference,
)
from sluicegate.validation.requests.name_pattern import EnforcedClients, NamePattern, OwnedClients
from sluicegate.validation.requests.request_rule import client_owners_of, exemptions_of, quotas_of, request_rule_of
from sluicegate.validation.rulebook import FilePolicies, Rulebook
from sluicegate.validation.rules.from_keys import INLINE_RULES, RuleMaker, rule_set_of
from sluicegate.validation.rules.rule import Mode, RuleUnusable
from sluicegate.validation.sensitive.from_keys import Sensitive, SensitiveUnusable, sensitive_fields_of
from sluicegate.validation.topic_entry import SettingUnusable, TopicEntry
from sluicegate.validation.units import PLAUSIBLE_MS


class PolicyUnusable(RuleUnusable):
    """Raised if a section's policy is invalid, or names a file that cannot be used. `path` is the key at fault."""

    def __init__(self, words: str, path: Path) -> None:
        super().__init__(words)
        self.path = path


def compile_policies(
    defaults: TopicKeys,
    topics: Iterable[tuple[str, TopicKeys]] = (),
    requests: Iterable[RequestKeys] = (),
    exempt: Iterable[Exempt] = (),
    maker: RuleMaker = INLINE_RULES,
    quotas: Iterable[QuotaKeys] = (),
    floor: Sequence[FloorKeys] = (),
    source: Source = NOWHERE,
    first: int = 0,
    client_owners: Iterable[ClientOwner] = (),
) -> FilePolicies:
    """Compile keys to policies. Keys that a topic does not set come from `defaults`.

    `source` contains the places of the keys, and `first` is the position there of the first entry of `topics`. Raises
    RuleUnusable.
    """
    requests, quotas, topics = tuple(requests), tuple(quotas), tuple(topics)
    ruled: list[TopicKeys | FloorKeys] = [defaults, *(keys for _, keys in topics), *floor]
    compiling = _Compiling(
        defaults,
        maker,
        _origins(source, requests, quotas),
        client_owners_of(client_owners),
    )
    return FilePolicies(
        compiling.policy(defaults, ("defaults",)),
        [(match, compiling.policy(keys, ("topics", i))) for i, (match, keys) in enumerate(topics, first)],
        [(rule.match.topics, request_rule_of(rule)) for rule in requests],
        exemptions_of(exempt),
        quotas_of(quotas),
        Floors(floor, defaults, maker) if floor else None,
        rules_name_principals=any(rule.names_principals for keys in ruled for rule in keys.rules or ()),
    )


def _origins(source: Source, requests: Sequence[RequestKeys], quotas: Sequence[QuotaKeys]) -> PolicyOrigins:
    """Return the origins that all policies of a configuration share."""
    return PolicyOrigins(
        source,
        requests={rule.name: i for i, rule in enumerate(requests)},
        quotas={quota.name: i for i, quota in enumerate(quotas)},
    )


def file_policies_of(
    config: Config, maker: RuleMaker = INLINE_RULES, source: Source = NOWHERE, only: int | None = None
) -> FilePolicies:
    """Return a configuration's policies.

    If `only` is given, compile only this entry of `topics`, and the defaults. Raises RuleUnusable.
    """
    first, end = (0, len(config.topics)) if only is None else (only, only + 1)
    topics = [(topic.match, topic) for topic in config.topics[first:end]]
    keys = (config.defaults, topics, config.requests, config.exempt, maker, config.quotas, config.floor)
    return compile_policies(*keys, source=source, first=first, client_owners=config.client_owners)


def policy_of_entry(
    config: Config, entry: TopicEntry, base: int | None, maker: RuleMaker, source: Source
) -> TopicPolicy:
    """Return the policy of a topic with topic settings.

    `base` is the position of the `topics` entry with which the settings are merged, or None. Raises SettingUnusable,
    and RuleUnusable if the configuration itself is at fault.
    """
    origins = _origins(source, config.requests, config.quotas)
    compiling = _Compiling(config.defaults, maker, origins, client_owners_of(config.client_owners))
    section = (TOPIC_SETTINGS,) if base is None else ("topics", base)
    try:
        return compiling.policy(entry.keys, section, entry.settings)
    except PolicyUnusable as error:
        name = str(error.path[1]) if error.path[0] == TOPIC_SETTINGS else next(iter(entry.settings.values()), "")
        raise SettingUnusable(name, str(error)) from None
    except RuleUnusable as error:
        if "rules" in entry.settings:
            raise SettingUnusable(entry.settings["rules"], str(error)) from None
        raise


def rulebook_of(config: Config, maker: RuleMaker = INLINE_RULES, source: Source = NOWHERE) -> Rulebook:
    """Return a configuration's initial rulebook, without cluster settings. Raises RuleUnusable."""
    return Rulebook(file_policies_of(config, maker, source))


def unusable_policies(config: Config, maker: RuleMaker, source: Source = NOWHERE) -> Iterator[PolicyUnusable]:
    """Yield each PolicyUnusable error that `file_policies_of` may raise, for all sections, except those of rules."""
    defaults = replace(config.defaults, rules=None)
    compiling = _Compiling(defaults, maker, PolicyOrigins(source), ())
    seen = set()
    for path, keys in (("defaults",), defaults), *((("topics", i), topic) for i, topic in enumerate(config.topics)):
        try:
            compiling.policy(replace(keys, rules=()), path)
        except PolicyUnusable as error:
            if error.path not in seen:
                seen.add(error.path)
                yield error


def limits_of(config: Config) -> ValidationLimits:
    """Return a configuration's validation limits."""
    limits = config.limits
    return ValidationLimits(
        limits.max_decompressed_bytes,
        limits.max_decompression_ratio,
        max_decompression_window_bytes=limits.max_decompression_window_bytes,
        max_record_errors=limits.max_record_errors,
        max_samples=config.violations.max_records if config.violations.has_destination else 0,
        max_request_records=limits.max_request_records,
        max_request_headers=limits.max_request_headers,
    )


_NAMED = tuple((key.attribute, key.name) for key in each_key_of(Topic) if key.name != "match")


class _Compiling:
    """The compilation of one configuration. `origins` contains the origins that all its policies share."""

    def __init__(
        self, defaults: TopicKeys, maker: RuleMaker, origins: PolicyOrigins, client_owners: tuple[OwnedClients, ...]
    ) -> None:
        self._defaults = defaults
        self._maker = maker
        self._origins = origins
        self._client_owners = client_owners
        self._paths_of_defaults = _paths_of(defaults, ("defaults",))

    def _sensitive(self, keys: Sequence[SensitiveKeys] | None, paths: Mapping[str, Path]) -> Sensitive | None:
        try:
            return sensitive_fields_of(keys, self._maker)
        except SensitiveUnusable as error:
            raise PolicyUnusable(str(error), (*paths["sensitive"], *error.path)) from error

    def policy(self, keys: TopicKeys, section: Path, settings: Mapping[str, str] = MappingProxyType({})) -> TopicPolicy:
        """Return the policy of `defaults` or of an entry of `topics`, at the path `section`.

        `settings` maps keys to the names of the topic settings that set them. Raises PolicyUnusable, and RuleUnusable
        for one of its rules.
        """

        def given(name: str) -> Any:
            own = getattr(keys, name)
            return own if own is not None else getattr(self._defaults, name)

        paths = {**self._paths_of_defaults, **_paths_of(keys, section)}
        paths |= {key: (TOPIC_SETTINGS, name) for key, name in settings.items() if key in paths}
        difference = given("difference_max_ms")
        cleanup = given("cleanup_policy") or "delete"
        dead_letters = keys.quarantine if isinstance(keys, Topic) else None
        mode = Mode(given("mode") or "reject")
        if dead_letters is not None:
            paths["checks"] = paths["quarantine"]
            if keys.mode != "observe":  # a mode from `defaults` is ignored
                mode, paths["mode"] = Mode.QUARANTINE, paths["quarantine"]
        fix = _fix(given("fix")) if dead_letters is None else None
        widest = PLAUSIBLE_MS if fix is TimeFix.UNIT else LONG_MAX
        bounds = {}
        for key, bound in ((BEFORE_MAX, given("before_max_ms")), (AFTER_MAX, given("after_max_ms"))):
            bounds[key] = bound_or_difference(bound, difference)
            if bounds[key] > widest:
                bounds[key], paths[key] = widest, paths["fix"]
            elif bounds[key] != bound and difference is not None:
                paths[key] = paths[DIFFERENCE_MAX]
        sensitive = self._sensitive(given("sensitive"), paths)
        others = {
            "quarantine": dead_letters,
            "samples": given("samples"),
            "checks: none": given("checks") == "none",
            "framing: broker": given("framing") == "broker",
        }
        for other, is_given in others.items() if sensitive is not None else ():
            if is_given:
                both = (paths["sensitive"], paths[other.partition(":")[0]])
                words = f"sensitive and {other} cannot be combined: values would be stored in clear text"
                raise PolicyUnusable(words, max(both, key=lambda path: path[: len(section)] == section))
        if sensitive is not None:
            paths["framing"] = paths["sensitive"]
        return TopicPolicy(
            TimestampType(given("timestamp_type") or "CreateTime"),
            bounds[BEFORE_MAX],
            bounds[AFTER_MAX],
            "compact" in str(cleanup).replace(" ", "").split(","),
            given("max_message_bytes"),
            dead_letters is not None or (given("checks") or "all") == "all",
            mode,
            _rehearsed(given("rehearse")),
            fix,
            dead_letters,
            rule_set_of(given("rules"), self._maker),
            samples=bool(given("samples")),
            framing=Framing(given("framing") or "safe"),
            enforced=_enforced(given("enforce")),
            owner=given("owner"),
            client_owners=self._client_owners,
            sensitive=sensitive,
            origins=replace(self._origins, paths=paths, rules=rule_paths(given("rules"), paths.get("rules"))),
        )


def _paths_of(keys: TopicKeys, section: Path) -> dict[str, Path]:
    """Return the path of each key that is set, by the key's name."""
    return {name: (*section, name) for attribute, name in _NAMED if getattr(keys, attribute, None) is not None}


def _enforced(keys: Enforce | None) -> EnforcedClients | None:
    return None if keys is None else EnforcedClients(tuple(map(NamePattern, keys.clients or ())), keys.percent)


def _fix(keys: FixKeys | None) -> TimeFix | None:
    return None if keys is None else TimeFix(keys.timestamp)


def _rehearsed(keys: Rehearse | None) -> RehearsedBounds | None:
    return None if keys is None else RehearsedBounds(keys.before_max_ms, keys.after_max_ms)
