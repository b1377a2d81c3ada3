"""Compiles the configuration of requests: rules, exemptions and quotas."""

from collections.abc import Iterable

from sluicegate.config import requests as keys
from sluicegate.config.quotas import Quota as QuotaKeys
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.validation.requests.name_pattern import Exemption, NamePattern
from sluicegate.validation.requests.quota import Quota
from sluicegate.validation.requests.request_rule import LeastVersion, RequestRule
from sluicegate.validation.rules.rule import Mode

_ACKS = {"all": -1, "1": 1, "0": 0}


def request_rule_of(rule: keys.RequestRule) -> RequestRule:
    """Return one rule, without its topics."""
    return RequestRule(
        rule.name,
        Mode(rule.mode),
        _pattern(rule.match.client_id),
        _pattern(rule.match.principal),
        None if rule.acks is None else frozenset(_ACKS[word] for word in rule.acks),
        None if rule.codecs is None else frozenset(Codec[word.upper()] for word in rule.codecs),
        rule.idempotent,
        _pattern(rule.client_id),
        rule.max_batch_bytes,
        tuple(LeastVersion(NamePattern(one.name), one.min_version) for one in rule.software),
    )


def exemptions_of(exempt: Iterable[keys.Exempt]) -> tuple[Exemption, ...]:
    """Return the exemptions in the order of the configuration."""
    return tuple(Exemption(_pattern(one.principal), _pattern(one.client_id)) for one in exempt)


def quotas_of(quotas: Iterable[QuotaKeys]) -> tuple[Quota, ...]:
    """Return the quotas in the order of the configuration."""
    return tuple(
        Quota(
            one.name,
            _pattern(one.client_id),
            _pattern(one.principal),
            _pattern(one.topic),
            one.bytes_per_second,
            one.requests_per_second,
            one.connections,
        )
        for one in quotas
    )


def _pattern(text: str | None) -> NamePattern | None:
    return None if text is None else NamePattern(text)
