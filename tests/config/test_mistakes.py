"""Any content of a file, the environment or an option results in a configuration or a message, never in a traceback."""

import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import ConfigError, Option, load, load_file
from tests.config.reading import SMALLEST, load_text, problems_of_text

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "sluicegate.yaml").read_text()
KEYS = [
    "upstream",
    "bootstrap",
    "brokers",
    "sasl",
    "tls",
    "password",
    "listen",
    "topics",
    "match",
    "limits",
]
ODD = [
    *("~", "null", "{}", "[]", "''", "true", "yes", "1", "0123456", "0o17", "1_000", "1:30", ".inf", "-.nan", "1e999"),
    *("2026-13-45", "2026-01-01", "!vault x", "!!binary eA==", "!!timestamp x", "!!set {a}", "!", "! x", "!<!> x"),
    *("{{ .Values.x }}", "${X}", "*anchor", "&a [*a]", "<<", "@x", "%x", "`x`", "|", ">", "- x", "? [x]", "? {x: y}"),
    *(r'"\ud800"', r'"\UFFFFFFFF"', r'"\0"', '"unclosed', "9" * 5000, "x" * 100_000, "[" * 2000, "{a: " * 2000),
    *("SASL_SSL://u:p@h:1", "h:1,h:2", "a: b: c", "\tx", "1h", "1 h 1", "99999999999d", "-1", "100MB", "/(/", "*"),
]
BROKEN = [
    "<<: *anchor\n",
    "base: &b {bootstrap: ['h:1']}\nupstream:\n  <<: *b\n",
    "upstream: &u\n  <<: *u\n",
    "upstream:\n  <<: 5\n",
    "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)),
    "x: &x {y: *x}\n",
    "a: 1\n---\nb: 2\n",
    "---\n...\n---\n",
    "%YAML 9.9\n---\na: 1\n",
    "%TAG ! tag:x,2000:\n---\na: !x y\n",
    "? ? ? a\n",
    ": x\n",
    "topics: {1: {match: x}}\n",
    "upstream: {brokers: {[1]: 'h:1'}}\n",
    "upstream: {brokers: {~: 'h:1', x: 'h:1', 99999999999: 'h:1', -1: 'h:1'}}\n",
    "\0",
    "a: \x07\n",
    "\ufeffa: 1",
    "\x85\u2028",
]


def problems_in_words(text: str, environment: dict[str, str] | None = None) -> list[str]:
    """Return the reported problems, if any. Any exception other than ConfigError fails the test."""
    try:
        load(read_yaml(text, "c.yaml"), environment or {})
    except ConfigError as error:
        said = [str(problem) for problem in error.problems]
    else:
        return []
    assert said
    assert all(line.isprintable() and len(line) < 700 for line in said)
    return said


@pytest.mark.parametrize("text", BROKEN)
def test_invalid_yaml_raises_a_printable_config_error(text: str) -> None:
    assert problems_in_words(text)
    problems_in_words(SMALLEST + text)


@pytest.mark.long
@pytest.mark.parametrize(
    "where",
    [
        "upstream: {X}\nlisten: {bootstrap: 'h:1'}",
        "upstream:\n  bootstrap: X\nlisten: {bootstrap: 'h:1'}",
        "upstream:\n  bootstrap: [X]\nlisten: {bootstrap: 'h:1'}",
        SMALLEST + "topics: X",
        SMALLEST + "topics:\n  - X",
        SMALLEST + "topics:\n  - match: X",
        SMALLEST + "topics:\n  - match: t\n    message.timestamp.before.max.ms: X",
        SMALLEST + "limits:\n  max_frame_bytes: X",
        SMALLEST + "workers: X",
        SMALLEST + "violations:\n  file: X",
        "upstream:\n  bootstrap: h:1\n  topic_settings: X\nlisten: {bootstrap: 'h:1'}",
        "upstream:\n  bootstrap: h:1\n  brokers: {X: 'h:1', 1: X}\nlisten: {bootstrap: 'h:1'}",
        "upstream:\n  bootstrap: h:1\n  sasl: X\nlisten: {bootstrap: 'h:1'}",
        "upstream:\n  bootstrap: h:1\n  sasl:\n    mechanism: PLAIN\n    username: X\n    password: X\nlisten: "
        "{bootstrap: 'h:1'}",
        "upstream: {bootstrap: h:1}\nlisten:\n  bootstrap: h:1\n  advertised_host: X",
        "upstream: {bootstrap: h:1}\nlisten:\n  bootstrap: X",
        "X: X",
        "X",
    ],
)
def test_unusual_value_of_any_key_is_accepted_or_raises_a_config_error(where: str) -> None:
    for odd in ODD:
        problems_in_words(where.replace("X", odd))


@given(st.lists(st.tuples(st.integers(0, len(EXAMPLE)), st.text(max_size=4) | st.sampled_from(ODD)), max_size=4))
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_corrupt_configuration_raises_only_printable_config_errors(damage: list[tuple[int, str]]) -> None:
    text = EXAMPLE
    for at, what in damage:
        text = text[:at] + what + text[at + len(what) % 3 :]
    problems_in_words(text)


_KEY_TEXTS = st.sampled_from(KEYS) | st.text(max_size=3)
_TEXTS = st.text(string.printable, max_size=8) | st.sampled_from([*KEYS, *ODD])


@given(
    st.recursive(
        _TEXTS | st.none() | st.booleans() | st.floats() | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=3)
        ),
        max_leaves=12,
    ).map(lambda tree: tree if isinstance(tree, dict) else {"upstream": tree, "topics": tree, "listen": tree})
)
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_random_yaml_structure_raises_only_printable_config_errors(tree: dict[str, object]) -> None:
    import yaml  # noqa: PLC0415

    problems_in_words(yaml.safe_dump(tree, allow_unicode=True))


@given(st.binary(max_size=60) | st.text(max_size=30).map(lambda text: text.encode("utf-16")))
@example(b"\xff\xfea\0:\0 \x001\0")
@example(b"\xef\xbb\xbfa: 1")
@example(b"a: 1\n\xff\n")
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_random_file_bytes_raise_printable_config_errors(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "c.yaml"
    file.write_bytes(content)

    with pytest.raises(ConfigError) as raised:
        load_file(file, {})

    assert all(str(problem).isprintable() for problem in raised.value.problems)


_PARTS = st.sampled_from([*(key.upper() for key in KEYS), "0", "1", "99", "²", "-1", "", "X", "9" * 9])


@given(st.dictionaries(st.lists(_PARTS, min_size=1, max_size=4).map("__".join), _TEXTS, max_size=5))
@example({"ADMIN__LISTEN": "x"})
@example({"TOPICS__²__MATCH": "x"})
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_random_environment_variables_raise_only_printable_config_errors(variables: dict[str, str]) -> None:
    environment = {f"SLUICEGATE__{name}": value for name, value in variables.items()}
    problems_in_words(SMALLEST + "admin: [x]\ntopics:\n", environment)


@given(_TEXTS, _TEXTS)
@settings(max_examples=50, deadline=None)
def test_random_command_line_options_raise_only_printable_config_errors(upstream: str, listen: str) -> None:
    options = [
        Option("--upstream", ("upstream", "bootstrap"), upstream),
        Option("--listen", ("listen", "bootstrap"), listen),
    ]
    try:
        load(read_yaml("", "command line"), {}, options)
    except ConfigError as error:
        assert all(str(problem).isprintable() for problem in error.problems)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        ("folder", "Is a directory"),
        (b"a\0", "YAML does not allow the character  #x0000"),
        ("ä: 1".encode("latin-1"), "not UTF-8; save it as UTF-8"),
        ("upstream:\n".encode("utf-16"), "it is UTF-16; save it as UTF-8"),
        (b"a: 1\n" * (4 << 20), "more than 16 MiB"),
    ],
)
def test_unreadable_configuration_file_raises_a_single_error_with_the_reason(
    content: bytes | str | None, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "c.yaml"
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif content is not None:
        file.mkdir()

    with pytest.raises(ConfigError) as raised:
        load_file(file, {"SLUICEGATE__NONSENSE": "1"})

    (problem,) = raised.value.problems
    assert reason in str(problem)


def test_yaml_merge_keys_apply_and_explicit_keys_take_precedence() -> None:
    text = SMALLEST + (
        "topics:\n  - &strict\n    match: a\n    cleanup.policy: compact\n    checks: all\n"
        "  - <<: *strict\n    match: b\n  - <<: [*strict]\n    match: c\n    checks: none\n"
    )
    topics = load_text(text).config.topics

    assert [(topic.match, topic.cleanup_policy, topic.checks) for topic in topics] == [
        ("a", "compact", "all"),
        ("b", "compact", "all"),
        ("c", "compact", "none"),
    ]


def test_empty_optional_section_equals_an_omitted_one() -> None:
    config = load_text(
        SMALLEST + "topics:\ndefaults:\nadmin:\nlimits:\n  max_in_flight:\nviolations:\nworkers:\n"
    ).config

    assert config == load_text(SMALLEST).config
    assert problems_of_text("upstream:\nlisten:\n  bootstrap:\n") == [
        "c.yaml:1: upstream: it is empty",
        "c.yaml:3: listen.bootstrap: it is empty",
    ]


def test_rejects_empty_tls_section() -> None:
    (problem,) = problems_of_text("upstream:\n  bootstrap: h:1\n  tls:\nlisten: {bootstrap: '127.0.0.1:2'}\n")

    assert problem == ("c.yaml:3: upstream.tls: the section is empty; write tls: {} for its defaults, or omit the key")
