"""A caught error that a function passes to a future must not create a reference cycle. The frames in the error's
traceback refer to the callers' data. If a frame also has a name for the future, this is a cycle. So the function must
delete such names in `finally`.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.oracle.kafka_java import ROOT
from tests.structure.imports import PACKAGES

# `RulesProcess._evaluated` raises the error again without its traceback.
_WITHOUT_TRACEBACK = {"proxy/rules_process/limited_evaluations.py settle"}


def names_of_kept_futures(text: str) -> Iterator[str]:
    """Yield each function that passes a caught error to a future and keeps a name for the future."""
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        deleted = {
            name.id
            for each in ast.walk(function)
            if isinstance(each, ast.Try)
            for last in each.finalbody
            for name in ast.walk(last)
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Del)
        }
        caught = {each.name for each in ast.walk(function) if isinstance(each, ast.ExceptHandler) and each.name}
        for call in ast.walk(function):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            if (
                call.func.attr != "set_exception"
                or not {each.id for each in call.args if isinstance(each, ast.Name)} & caught
            ):
                continue
            owner = call.func.value
            while isinstance(owner, ast.Attribute):
                owner = owner.value
            if isinstance(owner, ast.Name) and owner.id not in deleted:
                yield function.name


def test_no_name_refers_to_a_future_that_keeps_a_caught_error() -> None:
    found = {
        f"{path.relative_to(ROOT)} {name}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for name in names_of_kept_futures(path.read_text())
    }

    assert found == _WITHOUT_TRACEBACK


@pytest.mark.parametrize(
    ("last", "found"),
    [("", ["work"]), ("    finally:\n        del job\n", []), ("    finally:\n        del x\n", ["work"])],
)
def test_a_name_that_keeps_a_future_with_an_error_is_found(last: str, found: list[str]) -> None:
    text = f"""
def work(job):
    try:
        do()
    except ValueError as error:
        job.future.set_exception(error)
{last}"""

    assert list(names_of_kept_futures(text)) == found
