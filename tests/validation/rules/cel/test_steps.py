"""An expression's steps bound the time that the runtime takes, at a hundred nanoseconds each, for any record."""

import json
import subprocess
import sys
import time
from random import Random

import pytest

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.cel.rule import IsTrue
from sluicegate.validation.rules.cel.runtime import ExpressionUnusable
from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED, RuledRecord
from tests.bounds.machine import slowness
from tests.validation.rules.cel.random_expressions import RandomExpressions, random_value
from tests.validation.rules.records import record
from tests.validation.rules.steps import steps_of

LONG_NOTE = 100_000 if is_compiled() else 10_000  # interpreted code takes ten times as long to read a byte
SECONDS_OF_STEP = 100e-9
TIMED_STEPS = 1_000_000
ORDERS = {"orders": [{"paid": True, "amount": i + 1, "sku": f"sku-{i}"} for i in range(1500)]}


def record_of_json(content: object) -> RuledRecord:
    return record(json.dumps(content, separators=(",", ":")).encode(), b"k", ((b"h", b"v"),))


def cpu_seconds(rule: IsTrue, seen: RuledRecord, enough: float) -> float:
    """Return the CPU time of a violation (s), the minimum of several runs, because other processes lengthen it."""
    least = float("inf")
    for _ in range(7):
        begin = time.thread_time()
        rule.fault(seen)
        least = min(least, time.thread_time() - begin)
        if least <= enough:
            break
    return least


@pytest.mark.parametrize(
    ("expression", "content"),
    [
        ("value.filter(i, i > 1).map(i, i * 2).exists(i, i == -1)", list(range(9000))),
        ("value.filter(i, i > 1).map(i, i * 2).exists(i, i == -1)", list(range(1000))),
        ("value.a.all(i, value.b[0] == 0)", {"a": list(range(9000)), "b": [0] * 9000}),
        ("value.m.all(k, value.m[k] > 0)", {"m": {f"k{i}": 1 for i in range(4000)}}),
        ("value.orders.filter(o, o.paid).all(o, o.amount > 0)", ORDERS),
        ("value.orders.all(a, value.orders.exists(b, a.sku == b.sku))", ORDERS),
        ("value.all(a, value[0].contains('bb'))", ["a" * 100_000, *["a"] * 3000]),
        ("value.a.contains(value.b)", {"a": "a" * 100_000, "b": "a" * 50_000 + "b"}),
        ("value.map(a, value.map(b, value)).size() > 0", list(range(200))),
        ("value == value && value + value != value", [[[[[i]]]] for i in range(5000)]),
        ("value.all(i, i in value)", list(range(3000))),
        ("value.all(i, i.matches('(a|b)*a(a|b){50}c'))", ["ab" * 100] * 500),
        ("key.matches('a{1000}') || value.matches('a{500}b')", "a" * 10_000),
        ("[value].map(x, x + x).map(x, x + x).map(x, x + x).map(x, x + x)[0].size() > 0", "a" * 100_000),
        ("value.map(t, t + t + t).all(t, t.size() > 2)", ["é" * 50] * 2000),
        ("value.all(t, timestamp(t) > timestamp('2020-01-01T00:00:00Z'))", ["2026-01-01T00:00:00Z"] * 5000),
        ("size(value) > 0", [[]] * 20_000),
        ("size(value) > 0", [{"": {}}] * 20_000),
        ("size(value) > 0", ["\0"] * 3000),
        ("size(value) > 0", {f"\0{i}": 1 for i in range(3000)}),
        ("size(value) > 0", "é" * 500_000),
    ],
)
def test_cel_expressions_take_no_longer_than_their_estimated_steps(expression: str, content: object) -> None:
    rule = IsTrue(expression)
    seen = record_of_json(content)

    bound = steps_of(rule.fault, seen) * SECONDS_OF_STEP

    assert cpu_seconds(rule, seen, bound) <= bound


def test_random_cel_expressions_take_no_longer_than_their_estimated_steps() -> None:
    timed = 0
    for seed in range(200):
        try:
            rule = IsTrue(expression := RandomExpressions(seed).condition(1 + seed % 4))
        except ExpressionUnusable:  # for example a string in a list of numbers
            continue
        seen = record(random_value(seed), b"k" * (seed % 200), ((b"h", b"v" * (seed % 50)),))
        steps = steps_of(rule.fault, seen)
        if steps > TIMED_STEPS:
            continue
        timed += 1
        bound = steps * SECONDS_OF_STEP
        assert cpu_seconds(rule, seen, bound) <= bound, f"seed {seed}: {expression}"
    assert timed > 100


@pytest.mark.parametrize(
    ("expression", "content"),
    [
        ("value.amount > 0", {"amount": 1, "note": "x" * LONG_NOTE}),
        ("value.amount > 12 && value.state in ['NEW', 'SENT']", {"amount": 13, "state": "NEW"}),
        ("value.email.matches('^[^@]+@[^@]+[.][a-z]+$')", {"email": "somebody@example.org"}),
        ("value.lines.all(l, l.qty > 0)", {"lines": [{"sku": f"sku-{i}", "qty": i} for i in range(1000)]}),
        ("value.lines.filter(l, l.qty > 0).all(l, l.sku != '')", {"lines": [{"sku": "a", "qty": 1}] * 100}),
        ("value.a.all(i, value.m[i] > 0)", {"a": ["x"] * 1000, "m": {"x": 1}}),
        ("headers.h == 'v' && key.startsWith('k') && topic == 'orders'", {}),
    ],
)
def test_ordinary_cel_expressions_run_inline(expression: str, content: object) -> None:
    assert steps_of(IsTrue(expression).fault, record_of_json(content)) <= INLINE_STEPS


@pytest.mark.parametrize(
    ("expression", "content"),
    [
        ("value.filter(i, i > 1).map(i, i * 2).exists(i, i == -1)", list(range(9000))),
        ("value.orders.filter(o, o.paid).all(o, o.amount > 0)", ORDERS),
        ("value.all(a, value[0].contains('bb'))", ["a" * 500_000, *["a"] * 9000]),
        ("value.a.contains(value.b)", {"a": "a" * 300_000, "b": "a" * 150_000}),
        ("size(value) > 0", list(range(100_000))),
        ("[value].map(x, x + x)" + ".map(x, x + x)" * 20 + "[0] != ''", "a"),
    ],
)
def test_costly_cel_expressions_do_not_run_inline(expression: str, content: object) -> None:
    assert steps_of(IsTrue(expression).fault, record_of_json(content)) > INLINE_STEPS


@pytest.mark.parametrize(
    "expression",
    ["value.text.matches(value.pattern)", "value.matches('a' + key)", "google.protobuf.Int64Value{value: 1} == value"],
)
def test_cel_expressions_of_unknown_cost_have_unbounded_steps(expression: str) -> None:
    assert steps_of(IsTrue(expression).fault, record_of_json({})) == UNBOUNDED


def test_the_cost_of_an_expression_grows_with_the_record() -> None:
    rule = IsTrue("value.all(i, headers.h.contains(i))")
    found = [
        steps_of(rule.fault, record(json.dumps(["ab"] * count).encode(), b"", ((b"h", b"x" * count),)))
        for count in (0, 1, 10, 100, 1000, 10_000)
    ]

    assert found == sorted(found)


def test_exceeding_the_cel_iteration_budget_is_a_violation() -> None:
    rule = IsTrue("value.all(i, i >= 0)")

    assert rule.fault(record_of_json(list(range(9_999)))) is None
    assert rule.fault(record_of_json(list(range(10_000)))) == (
        "too costly to validate: 10,000 items or more for the loops: value.all(i, i >= 0)"
    )


def test_exhausted_memory_in_a_cel_expression_is_a_violation() -> None:
    script = (
        "import json, resource\n"
        "from sluicegate.validation.rules.cel.rule import IsTrue\n"
        "from tests.validation.rules.records import record\n"
        "rule = IsTrue('value.filter(i, i >= 0).size() > 0')\n"
        "seen = record(json.dumps(list(range(9000))).encode())\n"
        "resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))\n"
        "print(rule.fault(seen))\n"
        "print(rule.fault(record(b'[1]')))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)

    assert done.stdout.splitlines() == [
        "too costly to validate: evaluation needs too much memory: value.filter(i, i >= 0).size() > 0",
        "None",
    ], done.stderr


@pytest.mark.parametrize("pattern", [".*a.{300}c", "(.*a.{20}){10}c", "a[ab]{90}c", "[ab]*a[ab]{200}c"])
def test_regular_expression_with_many_states_is_costly(pattern: str) -> None:
    """RE2 builds a state for almost each byte. Regression: estimates of 10 ns for a byte allowed 400 ms without
    interruption.
    """
    rule = IsTrue(f"value.a.matches('{pattern}')")
    size = 1
    while steps_of(rule.fault, _with_letters(2 * size)) <= INLINE_STEPS:
        size *= 2

    assert cpu_seconds(rule, _with_letters(size), 0.02) < 0.05 * slowness()


def _with_letters(size: int) -> RuledRecord:
    return record_of_json({"a": "".join(Random(size).choices("ab", k=size))})
