"""Valid configurations can cause warnings and hints."""

import re
from fnmatch import translate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.config.values.glob_cover import covers, probably_intended_glob
from tests.config.reading import SMALLEST, load_text, problems_of_text


def configuration_matching(*matches: str) -> str:
    return SMALLEST + "topics:\n" + "".join(f"  - match: '{match}'\n" for match in matches)


@pytest.mark.parametrize(
    ("matches", "line", "first"),
    [
        (("*", "a", "b*"), 5, "topics[0] (*, c.yaml:4)"),
        (("/.*/", "/a+/"), 5, "topics[0] (/.*/, c.yaml:4)"),
        (("a", "b", "a"), 6, "topics[0] (a, c.yaml:4)"),
        (("orders*", "orders-eu*"), 5, "topics[0] (orders*, c.yaml:4)"),
        (("t?", "t1"), 5, "topics[0] (t?, c.yaml:4)"),
    ],
)
def test_warns_of_topic_pattern_that_an_earlier_pattern_covers(matches: tuple[str, ...], line: int, first: str) -> None:
    warning = load_text(configuration_matching(*matches)).warnings[0]

    assert warning.startswith(f"c.yaml:{line}: topics[{line - 4}].match {matches[line - 4]} never decides: {first}")


@pytest.mark.parametrize(
    "matches", [("a", "b"), ("orders-eu*", "orders*"), ("/a.*/", "/ab/"), ("t?", "t*"), ("a*", "*")]
)
def test_does_not_warn_of_patterns_that_apply_to_some_topic(matches: tuple[str, ...]) -> None:
    assert load_text(configuration_matching(*matches)).warnings == ()


GLOBS = st.text("ab*?", min_size=1, max_size=5)


@given(GLOBS, GLOBS, st.lists(st.text("ab", max_size=6), min_size=5, max_size=30))
def test_names_matched_by_a_covered_pattern_match_the_covering_pattern(
    first: str, later: str, names: list[str]
) -> None:
    if covers(first, later):
        matched = [name for name in names if re.fullmatch(translate(later), name)]
        assert all(re.fullmatch(translate(first), name) for name in matched)


def test_covers_gives_up_on_very_long_globs() -> None:
    assert covers("a*" * 4000 + "*", "a" * 8000) is False  # too long a value for a warning
    assert covers("a*" * 140, "a" * 280) is True


def test_comparison_of_four_thousand_topic_patterns_is_fast() -> None:
    matches = [f"t{i}-*" for i in range(2000)] + [f"exact-{i}" for i in range(2000)]

    assert load_text(configuration_matching(*matches)).warnings == ()


def test_hints_at_glob_with_a_dot_before_a_wildcard() -> None:
    found = load_text(configuration_matching("compacted.*", "a.b.*", "x*", "/y.*/"))

    assert found.warnings == ()
    (hint,) = found.hints
    assert hint.startswith("c.yaml:4: topics[0].match compacted.* is a glob, in which a dot is a literal dot")
    assert probably_intended_glob("compacted.*") == "compacted*"


@pytest.mark.parametrize(
    ("admin", "said"),
    [("9092", "is also the port of listen.bootstrap"), ("9095", "is the port that broker 2 would get")],
)
def test_warns_of_two_listeners_on_the_same_port(admin: str, said: str) -> None:
    text = (
        f"upstream: {{bootstrap: h:1}}\nlisten: {{bootstrap: '127.0.0.1:9092'}}\nadmin: {{listen: '0.0.0.0:{admin}'}}"
    )

    (warning,) = load_text(text).warnings
    assert said in warning


@pytest.mark.parametrize(("broker", "count"), [("127.0.0.1:9092", 1), ("127.0.0.1:9093", 0), ("h:9092", 0)])
def test_warns_of_bootstrap_server_that_is_the_proxy_itself(broker: str, count: int) -> None:
    text = f"upstream: {{bootstrap: ['h:1', '{broker}']}}\nlisten: {{bootstrap: '127.0.0.1:9092'}}\n"

    assert [words.partition(": ")[2] for words in load_text(text).warnings] == [
        "upstream.bootstrap[1] is listen.bootstrap, this proxy itself: name a broker"
    ] * count


def test_warns_of_rules_on_a_topic_without_checks() -> None:
    rules = "rules: [{name: keyed, key: {required: true}}]"
    found = load_text(f"{SMALLEST}topics:\n  - {{match: a, checks: none, {rules}}}\n  - {{match: b, {rules}}}\n")

    assert [words.partition(": ")[2] for words in found.warnings] == [
        "topics[0].rules are never evaluated: checks: none forwards all batches unvalidated"
    ]


def test_warns_of_samples_without_an_event_sink() -> None:
    found = load_text(f"{SMALLEST}topics:\n  - {{match: a, samples: true}}\n  - {{match: b, samples: false}}\n")
    with_file = load_text(f"{SMALLEST}defaults: {{samples: true}}\nviolations: {{file: v.jsonl}}\n")

    assert [words.partition(": ")[2] for words in found.warnings] == [
        "topics[0].samples affects only `sluicegate dead-letters`: without violations.file and violations.topic, no "
        "event has samples"
    ]
    assert not with_file.warnings


NAMED = {
    "exempt": "exempt: [{principal: 'User:mirror'}]",
    "exempt by expression": "exempt: [{principal: '/User:.*/'}]",
    "requests": "requests: [{name: r, match: {principal: 'User:a*'}, idempotent: true}]",
    "quotas": "quotas: [{name: q, principal: '*', bytes_per_second: 1MiB}]",
    "cel": "defaults: {rules: [{name: c, cel: \"client.principal == 'User:a' || size(value) > 1\"}]}",
}
UNNAMED = {
    "client ids": "exempt: [{client_id: mirror}]",
    "certificates": "exempt: [{principal: 'User:CN=mirror,*'}]",
    "every principal": "requests: [{name: r, match: {principal: 'User:*'}, idempotent: true}]",
}


@pytest.mark.parametrize("policy", NAMED.values(), ids=NAMED)
def test_warns_of_principal_policy_without_principal_mapping_declaration(policy: str) -> None:
    (warning,) = load_text(SMALLEST + policy).warnings

    assert warning.startswith("c.yaml:3: ")
    assert "listen does not declare how the brokers derive principals from logins" in warning


@pytest.mark.parametrize("policy", UNNAMED.values(), ids=UNNAMED)
def test_policy_without_principals_needs_no_principal_mapping_declaration(policy: str) -> None:
    assert load_text(SMALLEST + policy).warnings == ()


@pytest.mark.parametrize(
    "key", ["sasl.oauthbearer.sub.claim.name: azp", "oauth.username.claim: sub", "user_name_is_principal: [PLAIN]"]
)
@pytest.mark.parametrize("policy", NAMED.values(), ids=NAMED)
def test_does_not_warn_of_principal_policy_with_a_mapping_declaration(policy: str, key: str) -> None:
    declared = SMALLEST.replace("listen: {", f"listen: {{{key}, ") + policy

    assert load_text(declared).warnings == ()


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (
            "defaults: {mode: observe, fix: {timestamp: now}}",
            [("defaults.fix", "defaults, or in the entries of topics that need it")],
        ),
        ("defaults: {mode: observe}\ntopics: [{match: a, fix: {timestamp: now}}]", [("topics[0].fix", "topics[0]")]),
        ("topics: [{match: a, mode: observe, enforce: {percent: 10}}]", [("topics[0].enforce", "topics[0]")]),
        ("defaults: {mode: observe, fix: {timestamp: now}}\ntopics: [{match: a, mode: reject}]", []),
        ("defaults: {mode: observe}\ntopics: [{match: a, mode: reject, fix: {timestamp: now}}]", []),
    ],
)
def test_warns_of_fix_or_enforcement_in_observe_mode(text: str, keys: list[tuple[str, str]]) -> None:
    warnings = [words.partition(": ")[2] for words in load_text(SMALLEST + text).warnings]

    without_effect = "is never applied: mode: observe forwards batches unchanged. Write mode: reject in"
    assert warnings == [f"{key} {without_effect} {section}" for key, section in keys]


@pytest.mark.parametrize("pattern", ["mm", "mirror-*", "CN=mirror", "user:mm"])
def test_warns_of_principal_pattern_without_a_principal_type(pattern: str) -> None:
    (warning,) = load_text(SMALLEST + f"exempt: [{{principal: '{pattern}'}}]").warnings

    assert "matches no client" in warning
    assert warning.endswith(f'write principal: "User:{pattern}"')


@pytest.mark.parametrize("pattern", ["*", "U*", "*mm", "?ser:mm", "/.*mm/", "User:CN=mm"])
def test_does_not_warn_of_principal_pattern_that_can_match(pattern: str) -> None:
    assert not [
        words
        for words in load_text(SMALLEST + f"exempt: [{{principal: '{pattern}'}}]").warnings
        if "matches no client" in words
    ]


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("3600", "is 3.6 s, because the unit is milliseconds; for 3600 seconds write 1h or 3600000"),
        ("86400", "is 86.4 s, because the unit is milliseconds; for 86400 seconds write 1d or 86400000"),
        ("'604800'", "is 604.8 s, because the unit is milliseconds; for 604800 seconds write 7d or 604800000"),
        ("5400", "is 5.4 s, because the unit is milliseconds; for 5400 seconds write 90min or 5400000"),
    ],
)
@pytest.mark.parametrize("key", ["before", "after"])
def test_warns_of_timestamp_bound_that_seems_to_be_in_seconds(key: str, bound: str, words: str) -> None:
    name = f"message.timestamp.{key}.max.ms"
    sections = {
        f"defaults: {{{name}: {bound}}}": f"defaults.{name}",
        f"topics: [{{match: t, {name}: {bound}}}]": f"topics[0].{name}",
        f"floor: [{{match: t, {name}: {bound}}}]": f"floor[0].{name}",
        f"topics: [{{match: t, rehearse: {{{name}: [1h, {bound}]}}}}]": f"topics[0].rehearse.{name}",
    }

    assert {text: load_text(SMALLEST + text).warnings for text in sections} == {
        text: (f"c.yaml:3: {place} {words}",) for text, place in sections.items()
    }


@pytest.mark.parametrize(
    "bound", ["3600ms", "3600s", "1500", "30000", "60000", "3600000", "86400000", "0", "5", "3601"]
)
def test_does_not_warn_of_timestamp_bound_with_unit_or_in_milliseconds(bound: str) -> None:
    assert load_text(SMALLEST + f"topics: [{{match: t, message.timestamp.after.max.ms: {bound}}}]").warnings == ()


@pytest.mark.parametrize(("base", "broker"), [(9292, 0), (9290, 2), (9200, 92)])
def test_warns_of_broker_port_that_collides_with_the_bootstrap_port(base: int, broker: int) -> None:
    text = f"upstream: {{bootstrap: ['h:1']}}\nlisten: {{bootstrap: '127.0.0.1:9292', broker_port_base: {base}}}\n"

    assert load_text(text).warnings == (
        f"c.yaml:2: listen.bootstrap is the port that broker {broker} would get (listen.broker_port_base): clients "
        "cannot reach it",
    )


@pytest.mark.parametrize("base", [", broker_port_base: 65535", None])
def test_rejects_port_base_too_high_for_a_second_broker(base: str | None) -> None:
    port, key = (9292, "broker_port_base") if base else (65535, "bootstrap")
    text = f"upstream: {{bootstrap: ['h:1']}}\nlisten: {{bootstrap: '127.0.0.1:{port}'{base or ''}}}\n"

    (problem,) = problems_of_text(text)

    assert f"listen.{key} is too high: broker 1 would need 6553" in problem
    mapped = text[:-2] + ", broker_port_map: {0: 9300, 1: 9301}}\n"
    assert load_text(mapped).warnings == ()
