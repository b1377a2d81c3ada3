"""Operators' patterns are compiled: globs match as in fnmatch, and patterns that RE2 rejects cause a readable error."""

import re
from fnmatch import translate
from time import perf_counter

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from sluicegate.config.values.topic_pattern import exact_name_of, re2_options, regular_expression_of
from sluicegate.protocol.topic_name import LEGAL_CHARACTERS

NAMES = st.text(alphabet=LEGAL_CHARACTERS, min_size=1, max_size=12) | st.text("ab-.z", min_size=1, max_size=6)
GLOBS = st.text("ab-.z*?[]!^\\&|~ ä", min_size=1, max_size=12) | NAMES


@given(GLOBS, st.lists(NAMES, min_size=1, max_size=20))
@example("[!a-c]*", ["abc", "xbc"])
@example("[]a]", ["a", "b"])
@example("[!]a]", ["a", "b"])
@example("[b-a]", ["a", "b"])
@example("[!b-a]", ["a", "b"])
@example("[a-", ["a"])
@example("[--a]", [".", "b", "-"])
@example("[a-]", ["-", "a", "b"])
@example("[^a]", ["a", "b"])
@example("a**b", ["ab", "axb"])
@example("[z-ad-e]", ["a", "d", "e", "z", "-"])
def test_globs_match_like_fnmatch(glob: str, names: list[str]) -> None:
    if len(glob) > 1 and glob.startswith("/") and glob.endswith("/"):
        return
    ours = re2.compile(regular_expression_of(glob), re2_options())
    theirs = re.compile(translate(glob))

    assert [bool(ours.fullmatch(n)) for n in names] == [bool(theirs.fullmatch(n)) for n in names]


@pytest.mark.parametrize(
    ("pattern", "reason", "advice"),
    [
        ("/(?!test).*/", "invalid perl operator: (?!", "the first entry that matches decides"),
        ("/(?<=a)b/", "(?<", "the first entry that matches decides"),
        (r"/(a)\1/", r"\1", "write out what may be repeated"),
        ("/(?P<x>a)(?P=x)/", "(?P", ""),
        ("/(?>a+)b/", "(?>", "use plain ones"),
        ("/a++/", "++", "use plain ones"),
        (r"/abc\Z/", r"\Z", "leave it out"),
        ("/a{2000}/", "{2000}", "at most 1000"),
        ("/(/", "missing )", ""),
        ("/" + "(a{1000}b)" * 900 + "/", "too large", "several entries"),
        ("?" * 10_000, "not a glob that RE2 accepts", "several entries"),
        ("/" + "a" * 20_000_000 + "/", "20000002 characters", "at most 10000"),
        ("*" * 20_000_000, "20000000 characters", "at most 10000"),
        ("/\ud800/", "surrogate", ""),
        ("", "empty pattern", ""),
    ],
)
def test_rejects_unsupported_topic_pattern_with_advice(pattern: str, reason: str, advice: str) -> None:
    with pytest.raises(ValueError) as raised:
        regular_expression_of(pattern)

    assert not isinstance(raised.value, UnicodeError)
    assert reason in str(raised.value)
    assert advice in str(raised.value)
    assert len(str(raised.value)) < 500


def test_a_backtracking_topic_pattern_is_matched_in_linear_time() -> None:
    compiled = re2.compile(regular_expression_of("/(a*)*(a|aa)*b/"), re2_options())
    started = perf_counter()

    assert compiled.fullmatch("a" * 249) is None

    assert perf_counter() - started < 5


@pytest.mark.parametrize(
    ("match", "name"), [("orders.eu", "orders.eu"), ("o*", None), ("/orders/", None), ("[a", None)]
)
def test_a_glob_without_wildcards_is_an_exact_name(match: str, name: str | None) -> None:
    assert exact_name_of(match) == name
