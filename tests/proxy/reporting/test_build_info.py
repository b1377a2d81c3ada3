"""`sluicegate version` describes the build."""

from importlib.metadata import version
from pathlib import Path

from sluicegate.proxy.reporting.build_info import VERSION, uncompiled_modules


def test_declarations_without_a_module_of_their_own_are_not_missing(tmp_path: Path) -> None:
    room = tmp_path / "protocol"
    room.mkdir()
    for name in ("only_declared.pxd", "left_out.pxd", "left_out.py", "native.pxd", "native.pyx"):
        (room / name).touch()

    assert sorted(uncompiled_modules(tmp_path)) == ["protocol.left_out", "protocol.native"]


def test_the_version_is_the_installed_one() -> None:
    assert version("sluicegate") == VERSION
