"""Reads the rules that a registry stores with a schema (`ruleSet`, data contracts), if they affect stored records.

Confluent's serializers apply `domainRules` in order to the value, and then `encodingRules` to the bytes. Rules of kind
CONDITION are evaluated here (conditions.py). Rules of kind TRANSFORM change records before they are written. Encrypted
data cannot be validated. Conditions before a change apply to other values than those stored.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sluicegate.validation.rules.schemas.conditions import ConditionLanguage, SchemaCondition
from sluicegate.validation.rules.schemas.field_tags import FieldChange, TagsByPattern

_MODES: Final = frozenset({"WRITE", "WRITEREAD"})
_EVERYWHERE: Final = frozenset({"ALL", "CLIENT"})
_ENCRYPT: Final = "ENCRYPT"
_OF_FIELDS: Final = frozenset({_ENCRYPT, ConditionLanguage.CEL_FIELD.value})
_PHASES: Final = ("domainRules", "encodingRules")
_MOST_RULES = 100
_MOST_CHARACTERS = 10_000  # more than an expression can have
_MOST_TAGS = 1_000
_MOST_NAME = 100

_Rule = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WriteRules:
    """The rules that apply when a record is written.

    - `encrypted`: rules that encrypt fields.
    - `changes`: all rules that change fields.
    - `rewrites`: names of rules that change the whole value.
    - `payload`: names of rules that change the serialized bytes.
    - `unapplied`: sentences about rules that are not evaluated here.
    """

    conditions: tuple[SchemaCondition, ...] = ()
    encrypted: tuple[FieldChange, ...] = ()
    changes: tuple[FieldChange, ...] = ()
    rewrites: tuple[str, ...] = ()
    payload: tuple[str, ...] = ()
    unapplied: tuple[str, ...] = ()


NO_RULES: Final = WriteRules()


def write_rules_in(rule_set: object, metadata: object = None) -> WriteRules:
    """Return the rules in a registry's `ruleSet`. Raises ValueError if it cannot be read.

    `metadata` is the metadata that the registry stores with it, or None.
    """
    if rule_set is None:
        return NO_RULES
    if not isinstance(rule_set, Mapping):
        raise ValueError("its ruleSet cannot be read")
    domain, encoding = (_listed(rule_set, phase) for phase in _PHASES)
    if str(rule_set.get("enableAt") or "ALL") not in _EVERYWHERE:
        return NO_RULES
    by_pattern = _tags_by_pattern(metadata) if domain else ()
    domain, encoding = list(filter(_applies, domain)), list(filter(_applies, encoding))
    conditions: list[SchemaCondition] = []
    encrypted: list[FieldChange] = []
    unapplied: list[str] = []
    for at, rule in enumerate(domain):
        if rule.get("kind") == "TRANSFORM":
            if _type_of(rule) == _ENCRYPT:
                encrypted.append(_change_of(rule, by_pattern))
        elif rule.get("kind") == "CONDITION" and not _never_fails(rule):
            later = [each for each in domain[at + 1 :] if each.get("kind") == "TRANSFORM"]
            whole = next((each for each in later if _type_of(each) not in _OF_FIELDS), None)
            if whole is None:
                conditions.append(_condition(rule, by_pattern, [_change_of(each, by_pattern) for each in later]))
            else:
                unapplied.append(f"its condition {_name_of(rule)} is about values that {_name_of(whole)} changes later")
    payload = tuple(_name_of(rule) for rule in encoding if rule.get("kind") == "TRANSFORM")
    about_bytes = [rule for rule in encoding if rule.get("kind") == "CONDITION" and not _never_fails(rule)]
    for rule in about_bytes:
        if payload or _type_of(rule) in _OF_FIELDS:
            why = f"which {payload[0]} changes" if payload else "which have no fields"
            unapplied.append(f"its condition {_name_of(rule)} is about serialized bytes (encodingRules), {why}")
    if not payload:
        of_whole = (rule for rule in about_bytes if _type_of(rule) not in _OF_FIELDS)
        conditions += [replace(_condition(rule, by_pattern, ()), is_about_bytes=True) for rule in of_whole]
    transforms = [rule for rule in domain if rule.get("kind") == "TRANSFORM"]
    changes = tuple(_change_of(rule, by_pattern) for rule in transforms if _type_of(rule) in _OF_FIELDS)
    rewrites = tuple(_name_of(rule) for rule in transforms if _type_of(rule) not in _OF_FIELDS)
    return WriteRules(tuple(conditions), tuple(encrypted), changes, rewrites, payload, tuple(unapplied))


def _listed(rule_set: Mapping[str, Any], phase: str) -> list[_Rule]:
    rules = rule_set.get(phase) or ()
    if not isinstance(rules, Sequence) or not all(isinstance(rule, Mapping) for rule in rules):
        raise ValueError(f"the {phase} of the ruleSet cannot be read")
    if len(rules) > _MOST_RULES:
        raise ValueError(f"its ruleSet has more than {_MOST_RULES} {phase}")
    return list(rules)


def _applies(rule: _Rule) -> bool:
    return rule.get("mode") in _MODES and not rule.get("disabled")


def _never_fails(rule: _Rule) -> bool:
    """Return whether a violation rejects nothing. Confluent's Python client treats a missing expression as true."""
    return rule.get("expr") is None or str(rule.get("onFailure")).partition(",")[0] == "NONE"


def _condition(rule: _Rule, by_pattern: TagsByPattern, later: Sequence[FieldChange]) -> SchemaCondition:
    name, language = _name_of(rule), _type_of(rule)
    text = str(rule.get("expr") or "")[:_MOST_CHARACTERS]
    if language != ConditionLanguage.CEL_FIELD.value:
        return SchemaCondition(name, language, text, changes=tuple(later))
    return SchemaCondition(name, language, text, _tags_of(rule), by_pattern, tuple(later))


def _change_of(rule: _Rule, by_pattern: TagsByPattern) -> FieldChange:
    return FieldChange(_name_of(rule), _tags_of(rule), by_pattern)


def _name_of(rule: _Rule) -> str:
    return str(rule.get("name"))[:_MOST_NAME]


def _type_of(rule: _Rule) -> str:
    return str(rule.get("type")).upper()[:_MOST_NAME]


def _tags_of(rule: _Rule) -> frozenset[str]:
    return _texts(rule.get("tags"), f"the tags of its rule {_name_of(rule)}")


def _tags_by_pattern(metadata: object) -> TagsByPattern:
    """Return the tags in a schema's metadata. Raises ValueError."""
    tags = (metadata.get("tags") or {}) if isinstance(metadata, Mapping) else {}
    if not isinstance(tags, Mapping) or len(tags) > _MOST_TAGS:
        raise ValueError("the tags of its metadata cannot be read")
    return tuple((str(name)[:_MOST_TAGS], _texts(of, "the tags of its metadata")) for name, of in tags.items())


def _texts(found: object, where: str) -> frozenset[str]:
    if found is None:
        return frozenset()
    if not isinstance(found, list | tuple) or len(found) > _MOST_TAGS:
        raise ValueError(f"{where} cannot be read")
    return frozenset(map(str, found))


def passed_over_by(rules: WriteRules) -> Iterator[str]:
    """Yield a sentence for each part of records that is not validated because of these rules."""
    for name in rules.payload:
        yield f"values are not validated, because its rule {name} changes the serialized bytes (encodingRules)"
    for change in rules.encrypted:
        which = f"fields with the tags {', '.join(sorted(change.tags))}" if change.tags else "all fields"
        yield (
            f"only the type of {which} is validated, because its rule {change.name} encrypts them: formats, "
            "constraints, conditions and expressions that read them do not apply"
        )
    yield from rules.unapplied
