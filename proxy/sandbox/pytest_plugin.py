"""The pytest plugin: a fixture with a sandbox's address. A violation fails the test that sent the record.

pytest imports this module in every project that has sluicegate installed, so other modules are imported when the
fixture is used.
"""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sluicegate.proxy.sandbox.process import SandboxProcess
    from sluicegate.proxy.sandbox.violations import Violation

_MARK = "sluicegate_allow"
_OPTIONS = {
    "config": "The configuration with the policies, or a folder with a sluicegate.yaml.",
    "upstream": "Address of a disposable broker. Default: a mock cluster.",
    "topics": "Topics to create.",
    "allow": "Violations that fail no test, as TOPIC=CODE.",
}


class _Attribution:
    """The violations during a session that belong to a test."""

    def __init__(self, sandbox: "SandboxProcess") -> None:
        self.sandbox = sandbox
        self.last = 0

    def new(self) -> "list[Violation]":
        """Return the violations since the last call."""
        found = self.sandbox.violations(self.last)
        if found:
            self.last = found[-1].number
        return found


_ATTRIBUTION: pytest.StashKey[Any] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options on the command line and in pytest's configuration."""
    group = parser.getgroup("sluicegate")
    for name, text in _OPTIONS.items():
        group.addoption(f"--sluicegate-{name}", action="append", metavar="VALUE", help=text)
        if name == "config":
            parser.addini(f"sluicegate_{name}", text, type="paths")
        else:
            parser.addini(f"sluicegate_{name}", text, type="linelist")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    text = f"{_MARK}(*allowed): violations that do not fail this test, as TOPIC=CODE (sluicegate)"
    config.addinivalue_line("markers", text)


@pytest.fixture(scope="session")
def sluicegate_sandbox(pytestconfig: pytest.Config) -> "Iterator[SandboxProcess]":
    """Run a sandbox for all tests of the session."""
    from sluicegate.proxy.sandbox.process import SandboxFailed, SandboxProcess  # noqa: PLC0415  # see the docstring

    config = _values(pytestconfig, "config")
    if len(config) != 1:
        pytest.fail("set sluicegate_config in the configuration of pytest, or give --sluicegate-config", pytrace=False)
    others = {name: _values(pytestconfig, name) for name in ("upstream", "topics", "allow")}
    try:
        sandbox = SandboxProcess(config[0], **others)
    except SandboxFailed as error:
        pytest.fail(str(error), pytrace=False)
    attribution = _Attribution(sandbox)
    pytestconfig.stash[_ATTRIBUTION] = attribution
    yield sandbox
    late = [violation for violation in attribution.new() if violation.fails]
    sandbox.stop()
    if late:
        pytest.fail(f"records were sent after their tests had ended, so flush producers:\n{_text(late)}", pytrace=False)


@pytest.fixture
def sluicegate_bootstrap(sluicegate_sandbox: "SandboxProcess", request: pytest.FixtureRequest) -> str:
    """Return the address for the bootstrap.servers of clients. A violation fails the test."""
    attribution: _Attribution = request.config.stash[_ATTRIBUTION]
    late = [violation for violation in attribution.new() if violation.fails]
    request.node.stash[_ATTRIBUTION] = attribution
    if late:
        pytest.fail(f"records of an earlier test arrived late, so flush its producers:\n{_text(late)}", pytrace=False)
    return sluicegate_sandbox.bootstrap


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test whose records violated a policy."""
    try:
        result = yield
    except BaseException:
        failed = _violations_of(item)
        if failed:
            item.add_report_section("call", "sluicegate", _text(failed))
        raise
    failed = _violations_of(item)
    if failed:
        pytest.fail(f"sluicegate rejected records of this test:\n{_text(failed)}", pytrace=False)
    return result


def _violations_of(item: pytest.Item) -> "list[Violation]":
    """Return the violations that fail a test. The list is empty for a test without the fixture."""
    attribution: _Attribution | None = item.stash.get(_ATTRIBUTION, None)
    if attribution is None:
        return []
    from sluicegate.proxy.sandbox.violations import (  # noqa: PLC0415  # see the docstring
        allowance_of,
        codes_not_allowed,
    )

    allowed = [allowance_of(text) for mark in item.iter_markers(_MARK) for text in mark.args]
    return [
        violation
        for violation in attribution.new()
        if violation.fails and any(codes_not_allowed(allowed, violation.event["topic"], violation.codes))
    ]


def _values(config: pytest.Config, name: str) -> list[str]:
    """Return an option's values from the command line, or else from the configuration file."""
    given = config.getoption(f"sluicegate_{name}") or config.getini(f"sluicegate_{name}")
    return list(map(str, given))


def _text(violations: "list[Violation]") -> str:
    from sluicegate.proxy.sandbox.report_lines import lines_about  # noqa: PLC0415  # see the docstring
    from sluicegate.proxy.sandbox.violations import grouped  # noqa: PLC0415  # see the docstring

    return "\n".join(line for group in grouped(violations) for line in lines_about(group))
