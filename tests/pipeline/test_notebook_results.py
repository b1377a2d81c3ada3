"""A notebook shows results and progress. These tests need no Spark session."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import sluicegate
from sluicegate.pipeline.jobs.verify.job import Verification
from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.notebook import NotebookResult
from sluicegate.pipeline.report.wording import Conclusion
from sluicegate.pipeline.source import progress_line
from sluicegate.proxy.reporting.build_info import VERSION


class Result(NotebookResult):
    """A result whose texts come from a cluster."""

    def __init__(self, found: str, rows: list[tuple[str, int]]) -> None:
        self._found = found
        self._rows = rows

    def conclusion(self) -> Conclusion:
        return Conclusion(self._found, "Nothing.")

    def table(self) -> ConsoleTable:
        return ConsoleTable("Topics", ("topic", "records"), self._rows)


def test_the_repr_of_a_result_is_one_short_line() -> None:
    shown = repr(Result("1,000 records.\n" * 50, []))

    assert shown.startswith("<Result: 1,000 records. 1,000 records.")
    assert "\n" not in shown
    assert len(shown) < 220


def test_the_html_of_a_result_escapes_its_conclusion_and_table() -> None:
    html = Result("<b>4</b> damaged", [("<script>", 1_000_000)])._repr_html_()

    assert "<p><strong>&lt;b&gt;4&lt;/b&gt; damaged</strong></p>" in html
    assert "<td>&lt;script&gt;</td>" in html
    assert ">1,000,000</td>" in html
    assert "<table" not in Result("none", [])._repr_html_()


def test_results_of_jobs_show_their_conclusion() -> None:
    counts: dict[str, Any] = {"records": {"source": 3, "target": 3}, "repairs": {"zero": 1}, "differences": {}}

    found = Verification(True, {"source": "a", "target": "b", "same": True} | counts, None)

    assert repr(found) == "<Verification: a and b have the same records, apart from declared repairs.>"
    assert "<td>declared repairs: zero</td>" in found._repr_html_()


def test_progress_is_updated_in_place_below_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    handle = SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))
    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=lambda *_, **__: handle))

    display = progress_line._notebook()
    assert display is not None
    line = progress_line._Display(display)
    line.show("profile: 5 of 10 offsets read")
    line.erase()

    assert shown == ["profile: 5 of 10 offsets read", ""]


def test_outside_of_a_notebook_nothing_is_displayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert progress_line._notebook() is None

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None)))
    assert progress_line._notebook() is None


def test_the_package_has_its_version_without_importing_modules() -> None:
    assert sluicegate.__version__ == VERSION
    program = "import sys, sluicegate; print(any(name.startswith('sluicegate.') for name in sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
    )
