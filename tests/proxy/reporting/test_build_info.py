"""`sluicegate version` describes the build."""

from importlib.metadata import version
from pathlib import Path

from sluicegate.proxy.reporting.build_info import VERSION, uncompiled_modules


def test_uncompiled_modules_ignores_pxd_files_without_module(tmp_path: Path) -> None:
    room = tmp_path / "protocol"
    room.mkdir()
    for name in ("only_declared.pxd", "left_out.pxd", "left_out.py", "native.pxd", "native.pyx"):
        (room / name).touch()

    assert sorted(uncompiled_modules(tmp_path)) == ["protocol.left_out", "protocol.native"]


def test_version_equals_installed_version() -> None:
    assert version("sluicegate") == VERSION
