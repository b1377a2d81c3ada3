"""`topic_files` reads topics' entries from additional files, and reports mistakes in them with file, key and line."""

from pathlib import Path

import pytest

from sluicegate.config.loading import ConfigError, Loaded, load_file
from sluicegate.validation.from_keys import rulebook_of
from tests.config.reading import SMALLEST

BEFORE = "message.timestamp.before.max.ms"


@pytest.fixture
def main(tmp_path: Path) -> Path:
    (tmp_path / "policies").mkdir()
    return tmp_path / "sluicegate.yaml"


def load_files(main: Path, text: str, **files: str) -> Loaded:
    """Write and load a configuration. `files`: the content of policy files by name without suffix."""
    main.write_text(SMALLEST + text)
    for stem, content in files.items():
        (main.parent / "policies" / f"{stem}.yaml").write_text(content)
    return load_file(main, {})


def problems_of_file(main: Path, text: str, **files: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_files(main, text, **files)
    return [str(problem).replace(str(main.parent), "F") for problem in caught.value.problems]


def test_entries_follow_the_main_files_in_order_of_file_names(main: Path) -> None:
    loaded = load_files(
        main,
        "topic_files: policies/*.yaml\ntopics: [{match: own}]\n",
        b="topics:\n  - match: b1\n  - match: b2\n",
        a="topics: [{match: a}]",
    )

    assert [topic.match for topic in loaded.config.topics] == ["own", "a", "b1", "b2"]


def test_main_file_entries_precede_topic_files_and_defaults_apply_last(main: Path) -> None:
    rulebook = rulebook_of(
        load_files(
            main,
            f"defaults: {{{BEFORE}: 7}}\ntopic_files: policies/*.yaml\ntopics: [{{match: pay*, mode: reject}}]\n",
            team=f"topics: [{{match: payments, mode: observe}}, {{match: orders, {BEFORE}: 5}}]",
        ).config
    )

    assert rulebook.policy_of("payments").mode.value == "reject"
    assert [rulebook.policy_of(topic).before_max_ms for topic in ("orders", "else")] == [5, 7]


def test_topic_files_are_read_in_the_order_of_their_patterns_each_once(main: Path) -> None:
    loaded = load_files(
        main,
        "topic_files: [policies/z.yaml, policies/*.yaml]\n",
        a="topics: [{match: a}]",
        z="topics: [{match: z}]",
    )

    assert [topic.match for topic in loaded.config.topics] == ["z", "a"]


def test_topic_file_wildcard_excludes_the_main_configuration_file(main: Path) -> None:
    assert load_files(main, "topic_files: '*.yaml'\ntopics: [{match: own}]\n").config.topics[0].match == "own"


def test_topic_file_error_reports_file_key_and_line(main: Path) -> None:
    assert problems_of_file(
        main,
        "topic_files: policies/*.yaml\ntopics: [{match: own}, {match: own2}]\n",
        a="topics:\n  - match: fine\n  - match: bad\n    cleanup.polici: compact\n",
        b="topics:\n  - mode: observe\n",
        c="topics:\n  - match: x\n    fix:\n",
    ) == [
        "F/policies/c.yaml:3: topics[0].fix: the section is empty; add its required keys, or omit the key",
        "F/policies/a.yaml:4: topics[1].cleanup.polici: no such key; did you mean cleanup.policy?",
        "F/policies/b.yaml:2: topics[0].match: this key is required",
    ]


def test_rejects_topic_file_with_unsupported_key_or_invalid_yaml(main: Path) -> None:
    assert problems_of_file(
        main,
        "topic_files: [policies/*.yaml, policies/missing.yaml]\n",
        a="limits: {max_in_flight: 5}\n",
        b="topics: 5\n",
        c="topics: [",
    ) == [
        "F/policies/a.yaml:1: limits: only topics and owner are allowed in a file of topic_files; move other keys to "
        "F/sluicegate.yaml",
        "F/policies/b.yaml:1: topics: expected a list, each item beginning with `- match:`",
        "F/policies/c.yaml:1: not YAML: expected the node content, but found '<stream end>'",
        "F/policies/missing.yaml: cannot be read: No such file or directory",
    ]


def test_warns_of_pattern_covered_by_another_topic_file_with_both_locations(main: Path) -> None:
    (warning,) = load_files(
        main,
        "topic_files: policies/*.yaml\n",
        a="topics:\n  - match: 'orders*'\n",
        b="topics:\n  - match: orders-eu\n",
    ).warnings

    folder = main.parent / "policies"
    assert warning.startswith(f"{folder}/b.yaml:2: topics[0].match orders-eu never decides: topics[0] (orders*, ")
    assert f"{folder}/a.yaml:2)" in warning


def test_warns_of_topic_file_pattern_without_a_match(main: Path) -> None:
    (warning,) = load_files(main, "topic_files: policies/*.yml\n").warnings

    assert warning == f"{main}:3: topic_files {main.parent}/policies/*.yml matches no file"


def test_empty_topic_file_has_no_topics(main: Path) -> None:
    assert load_files(main, "topic_files: policies/*.yaml\n", a="", b="topics:\n").config.topics == ()


def test_topic_files_above_16_mib_are_rejected(main: Path) -> None:
    (main.parent / "policies" / "big.yaml").write_bytes(b"#" * (17 << 20))

    (problem,) = problems_of_file(main, "topic_files: policies/*.yaml\n")
    assert problem == (
        "F/sluicegate.yaml:3: topic_files: F contains 1 files of 17 MiB; expected at most 1000, of 16 MiB together"
    )


def test_rejects_too_many_topic_files_with_their_count(main: Path) -> None:
    for i in range(1100):
        (main.parent / "policies" / f"{i}.yaml").touch()

    (problem,) = problems_of_file(main, "topic_files: policies/*.yaml\n")
    assert problem == (
        "F/sluicegate.yaml:3: topic_files: F/policies/*.yaml matches 1100 files; expected at most 1000, "
        "of 16 MiB together"
    )


def test_environment_topic_index_refers_to_entries_of_the_main_file(main: Path) -> None:
    main.write_text(SMALLEST + "topics: [{match: own}]\n")
    (main.parent / "policies" / "a.yaml").write_text("topics: [{match: a}]")

    config = load_file(
        main, {"SLUICEGATE__TOPIC_FILES": "policies/a.yaml", "SLUICEGATE__TOPICS__0__MODE": "observe"}
    ).config

    assert [(topic.match, topic.mode) for topic in config.topics] == [("own", "observe"), ("a", None)]


SCOPED = 'topic_files: [{path: "policies/pay*.yaml", topics: ["payments.*", ledger]}, policies/other.yaml]\n'


def test_accepts_entries_within_their_file_scope_and_any_topic_without_a_scope(main: Path) -> None:
    loaded = load_files(
        main,
        SCOPED,
        pay="topics: [{match: payments.eu, quarantine: payments.dead}, {match: '/payments\\.[a-z]+/'}]",
        other="topics: [{match: '*', checks: none}]",
    )

    assert [topic.match for topic in loaded.config.topics] == ["payments.eu", "/payments\\.[a-z]+/", "*"]
    assert not loaded.warnings


def test_rejects_topic_entry_outside_its_file_scope_with_a_correction(main: Path) -> None:
    scope = "the scope of this file, payments.*, ledger (F/sluicegate.yaml:3)"
    instead = 'write match: "payments.*", or a part of it'
    assert problems_of_file(
        main,
        SCOPED,
        pay="topics:\n  - match: '*'\n    checks: none\n  - match: payments.eu\n    quarantine: orders\n",
        pay2="topics: [{match: /pay.*/}, {match: ledgers}, {match: '/(/'}]",
        other="topics: []",
    ) == [
        f"F/policies/pay.yaml:2: topics[0].match: * is not limited to {scope}; {instead}",
        f"F/policies/pay.yaml:5: topics[1].quarantine: orders is not limited to {scope}; name a topic within the scope",
        f"F/policies/pay2.yaml:1: topics[0].match: /pay.*/ is not limited to {scope}; {instead}; a regular expression "
        r"must begin with its fixed text: /payments\..../",
        f"F/policies/pay2.yaml:1: topics[1].match: ledgers is not limited to {scope}; {instead}",
        "F/policies/pay2.yaml:1: topics[2].match: not a regular expression that RE2 accepts: missing ): (",
    ]


def test_topic_file_must_satisfy_all_scopes_that_match_it(main: Path) -> None:
    (problem,) = problems_of_file(
        main,
        "topic_files: [policies/*.yaml, {path: policies/pay.yaml, topics: payments.*}]\n",
        pay="topics: [{match: payments.eu}, {match: orders}]",
    )

    assert problem.startswith("F/policies/pay.yaml:1: topics[1].match: orders is not limited to the scope")


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        (
            "{path: policies/pay.yaml, topics: }",
            "topic_files[0].topics: the key is empty; name the topics, or omit",
        ),
        ("{path: policies/pay.yaml, topics: []}", "topic_files[0].topics: expected at least one"),
        ("{path: policies/pay.yaml, topics: a/b}", "topic_files[0].topics[0]: no topic has a slash in its name"),
        ("{path: policies/pay.yaml, scope: a}", "topic_files[0].scope: no such key; write topics: [a]"),
        ("{topics: a}", "topic_files[0].path: this key is required"),
    ],
)
def test_rejects_invalid_scope_of_a_topic_file(main: Path, item: str, problem: str) -> None:
    found = problems_of_file(main, f"topic_files: [{item}]\n", pay="topics: [{match: a}]")

    assert any(f": {problem}" in each for each in found), found


def test_topic_file_wildcard_excludes_test_case_files(main: Path) -> None:
    cases = {"a.test": "cases: []", "a": "topics: [{match: a}]"}

    assert [topic.match for topic in load_files(main, "topic_files: policies/*.yaml\n", **cases).config.topics] == ["a"]
    (problem,) = problems_of_file(main, "topic_files: policies/a.test.yaml\n", **cases)
    assert "only topics and owner are allowed" in problem


def test_owner_precedence_is_entry_then_file_then_configuration_item(main: Path) -> None:
    loaded = load_files(
        main,
        "defaults: {owner: {team: platform}}\n"
        "topic_files: [{path: policies/a*.yaml, owner: {team: item}}, policies/*.yaml]\n"
        "topics: [{match: own}]\n",
        a="owner: {team: file, contact: '#file'}\ntopics:\n  - {match: a1, owner: {team: entry}}\n  - match: a2\n",
        a2="topics: [{match: a3}]",
        b="topics: [{match: b}]",
    )
    rulebook = rulebook_of(loaded.config, source=loaded.source)

    owners = {topic: str(rulebook.policy_of(topic).owner) for topic in ("a1", "a2", "a3", "b", "own", "else")}
    assert owners == {
        "a1": "entry",
        "a2": "file (#file)",
        "a3": "item",
        "b": "platform",
        "own": "platform",
        "else": "platform",
    }
    sources = {topic: rulebook.policy_of(topic).origins.paths["owner"] for topic in owners}
    folder = main.parent / "policies"
    assert [f"{loaded.source.place_of(path)}, {loaded.source.key_of(path)}" for path in sources.values()] == [
        f"{folder}/a.yaml:3, topics[0].owner",
        f"{folder}/a.yaml:1, owner",
        f"{main}:4, topic_files[0].owner",
        *[f"{main}:3, defaults.owner"] * 3,
    ]


def test_owner_error_in_a_topic_file_reports_its_line(main: Path) -> None:
    assert problems_of_file(
        main, "topic_files: policies/*.yaml\n", a="topics: [{match: a}]\nowner: {name: a}\n", b="owner: {contact: b}\n"
    ) == [
        "F/policies/a.yaml:2: owner.team: this key is required",
        "F/policies/a.yaml:2: owner.name: no such key; write team: a",
    ]
