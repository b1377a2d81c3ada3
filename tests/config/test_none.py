"""The word `none` for numbers means no bound, in files, variables, the JSON Schema and the page of all keys."""

import json

import jsonschema_rs
import pytest

from sluicegate.config.keys import each_key_of, item_of, note_of, section_of, takes_none
from sluicegate.config.model import Config
from sluicegate.config.reference.json_schema import schema_of_file
from sluicegate.config.reference.page import page
from sluicegate.config.values.quantity import Quantity
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.from_keys import rulebook_of
from tests.config.reading import SMALLEST, load_text, problems_of_text

BEFORE, AFTER, BYTES = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "max.message.bytes"


def sections_with_paths(section: type, path: tuple[str, ...] = ()) -> dict[type, tuple[str, ...]]:
    """Return each section of the model, with a path to it."""
    found = {section: path}
    for key in each_key_of(section):
        for inner in (section_of(key.annotation), section_of(item_of(key.annotation))):
            if inner is not None:
                found = sections_with_paths(inner, (*path, key.name)) | found
    return found


@pytest.mark.parametrize("key", [BEFORE, AFTER, "message.timestamp.difference.max.ms", BYTES])
@pytest.mark.parametrize("word", ["none", "'none'", "9223372036854775807", "'9223372036854775807'"])
def test_topic_bound_none_overrides_the_default_bound(key: str, word: str) -> None:
    config = load_text(
        f"{SMALLEST}defaults: {{{key}: 7}}\ntopics: [{{match: free, {key}: {word}}}, {{match: bound}}]"
    ).config
    book = rulebook_of(config)
    attribute = {BYTES: "max_message_bytes", AFTER: "after_max_ms"}.get(key, "before_max_ms")

    assert getattr(book.policy_of("bound"), attribute) == 7
    assert getattr(book.policy_of("free"), attribute) == LONG_MAX


def test_cluster_bound_applies_to_topic_with_bound_none() -> None:
    words = f"{{match: t, {BEFORE}: none, {AFTER}: none, {BYTES}: none}}"
    book = rulebook_of(load_text(f"{SMALLEST}topics: [{words}]").config)

    policy = book.with_settings({"t": ClusterSettings(before_max_ms=5, after_max_ms=6, max_message_bytes=7)}).policy_of(
        "t"
    )

    assert (policy.before_max_ms, policy.after_max_ms, policy.max_message_bytes) == (5, 6, 7)


def test_floor_bound_none_leaves_the_topic_bound_in_force() -> None:
    text = f"{SMALLEST}floor: [{{match: '*', {AFTER}: none}}]\ntopics: [{{match: t, {AFTER}: 1h}}]"
    assert rulebook_of(load_text(text).config).policy_of("t").after_max_ms == 3_600_000


def test_optional_number_none_equals_an_omitted_key() -> None:
    names = [key.name for key in each_key_of(type(load_text(SMALLEST).config.limits)) if takes_none(key.annotation)]
    assert "max_connections" in names
    text = "limits: {" + ", ".join(f"{name}: none" for name in names) + "}"

    assert load_text(SMALLEST + text).config.limits == load_text(SMALLEST).config.limits
    assert load_text(SMALLEST, SLUICEGATE__LIMITS__MAX_CONNECTIONS="none").config.limits.max_connections is None
    rule = "rules: [{name: r, value: {required: true, max_size: none}}]"
    assert load_text(f"{SMALLEST}topics: [{{match: t, {rule}}}]").config.topics[0].rules[0].value.max_size is None


def test_a_required_number_rejects_none() -> None:
    assert problems_of_text(SMALLEST + "limits: {max_in_flight: none}") == [
        "c.yaml:3: limits.max_in_flight: expected a whole number, such as 1; found 'none'"
    ]


def test_json_schema_and_reference_list_none_only_for_numbers_that_accept_it() -> None:
    whole = schema_of_file()
    rows = page()
    seen = 0
    for section, path in sections_with_paths(Config).items():
        properties = (whole if section is Config else whole["$defs"][section.__name__])["properties"]
        for key in each_key_of(section):
            quantity = note_of(key.annotation, Quantity)
            if quantity is None or section_of(item_of(key.annotation)) is not None or item_of(key.annotation):
                continue
            offers = '{"const": "none"}' in json.dumps(properties[key.name])
            assert offers == (takes_none(key.annotation) or quantity.none is not None), (path, key.name)
            seen += offers
    assert seen > 20
    assert (
        f"| `{AFTER}` | The maximum time by which a record's timestamp may be in the future (KIP-937). "
        "| duration (ms) or `none` |" in rows
    )
    text = {
        "upstream": {"bootstrap": "h:1"},
        "listen": {"bootstrap": "h:2"},
        "defaults": {AFTER: "none", BYTES: "none"},
    }
    assert jsonschema_rs.validator_for(whole).is_valid(text)
