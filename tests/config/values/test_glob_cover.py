"""A pattern that is reported as within a scope matches no name outside the scope, in every spelling."""

from itertools import product

import pytest
import re2
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sluicegate.config.values.glob_cover import is_within
from sluicegate.config.values.topic_pattern import re2_options, regular_expression_of

NAMES = ["".join(name) for length in range(1, 6) for name in product("ab.-", repeat=length)]
GLOBS = st.lists(st.sampled_from(["a", "b", ".", "-", "*", "?", "[ab]", "[!a]", "[a", "]", "[b-a]"]), min_size=1).map(
    lambda parts: "".join(parts[:7])
)
EXPRESSIONS = st.recursive(
    st.sampled_from(["a", "b", r"\.", "-", ".", "[ab]", "[^a]", r"\Qa.\E", "(?i)A", "^", "$", r"\b", "(?:)", r"\x61"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        inner.map("({})".format),
        inner.map("(?:{})".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{0}", "{0,2}", "*?"])).map(lambda p: f"(?:{p[0]}){p[1]}"),
    ),
    max_leaves=6,
).map("/{}/".format)
PATTERNS = GLOBS | EXPRESSIONS | st.sampled_from(NAMES[:100])


def names_matched_by_re2(pattern: str) -> set[str]:
    """Return the short names that a pattern matches, by RE2."""
    compiled = re2.compile(regular_expression_of(pattern), re2_options())
    return {name for name in NAMES if compiled.fullmatch(name) is not None}


@settings(max_examples=400, deadline=None)
@given(PATTERNS, st.lists(GLOBS | st.sampled_from(["a*", "a.*", "a-*", "ab", "b?*"]) | EXPRESSIONS, max_size=2))
@example("/a|b/", ["a*"])
@example("/a-|a\\./", ["a-*"])
@example("/aa?/", ["aa*"])
@example("/(?i)a.*/", ["a*"])
def test_pattern_within_a_scope_matches_no_topic_outside_the_scope(pattern: str, scope: list[str]) -> None:
    try:
        inside = set().union(*map(names_matched_by_re2, scope))
        names = names_matched_by_re2(pattern)
    except ValueError:
        return  # not a valid pattern
    if is_within(pattern, scope):
        assert names <= inside


@pytest.mark.parametrize(
    ("scope", "pattern"),
    [
        ("payments.*", "payments.*"),
        ("payments.*", "payments.eu"),
        ("payments.*", "payments.eu.*"),
        ("payments.*", "payments.?"),
        ("payments.*", "payments.[ab]*"),
        ("payments*", "payments"),
        ("pay[a-m]*", "pay[bcd].x*"),
        ("*.payments", "eu.payments"),
        ("*.payments", "*.eu.payments"),
        ("*", "/.*/"),
        ("payments.*", r"/payments\.(eu|us)/"),
        ("payments.*", r"/payments\.(eu|us)-\d+|payments\.x/"),
        ("payments.*", r"/\Qpayments.\E.*/"),
        ("payments-*", r"/payments-.*/"),
        (r"/payments\.(eu|us)/", "payments.eu"),
        (r"/payments\.(eu|us)/", r"/payments\.(eu|us)/"),
        ("/.*/", "*"),
    ],
)
def test_is_within_accepts_part_of_a_scope(scope: str, pattern: str) -> None:
    assert is_within(pattern, ["orders", scope])


@pytest.mark.parametrize(
    ("scope", "pattern"),
    [
        ("payments.*", "*"),
        ("payments.*", "payments*"),
        ("payments.*", "payments?eu"),
        ("payments.*", "payments[.-]eu"),
        ("payments.*", "[p]ayments*"),
        ("payments.*", "Payments.eu"),
        ("payments.*", "payments"),
        ("payments.?", "payments.*"),
        ("payments.[ab]", "payments.?"),
        ("payments.[ab]", "payments.[bc]"),
        ("*.payments", "*payments"),
        ("payments.*", "/payments.*/"),  # the dot stands for any character
        ("payments.*", r"/payments\..*|orders/"),
        ("payments.*", r"/payments\.?.*/"),
        ("payments.*", r"/(payments\.)?.*/"),
        ("payments.*", r"/(?i)payments\..*/"),
        ("payments.*", "/.*/"),
        ("payments.*", r"/(payments\.x[|]|orders)/"),
        ("payments-*", r"/payments[-.]x/"),
        ("*.payments", r"/eu\.payments/"),  # the pattern is within the scope, but only prefixes are proven
        (r"/payments\..*/", "payments.*"),  # likewise
        (r"/payments\.(eu|us)/", "payments.asia"),
    ],
)
def test_a_pattern_that_may_match_other_topics_is_not_within_the_scope(scope: str, pattern: str) -> None:
    assert not is_within(pattern, ["orders", scope])


def test_no_pattern_is_within_an_empty_scope() -> None:
    assert not is_within("a", [])
