"""What a wheel holds, and what its name promises."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "protocol", "validation", "config", "proxy", "pipeline")


def build(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A wheel of this source in `folder`/dist, made by a compiler that never works."""
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        else:
            shutil.copy2(ROOT / part, folder)
    return subprocess.run(
        [sys.executable, "-m", "uv", "build", "--wheel", "--quiet", "--python", sys.executable],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": "", "CC": "false", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_wheel_without_compiled_parts_runs_anywhere_and_says_so(tmp_path: Path) -> None:
    done = build(tmp_path)

    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.endswith((".c", ".so"))]
    assert {"protocol/framing.pxd", "proxy/py.typed", "pipeline/log4j2.properties"} <= set(names)


def test_a_build_that_must_be_compiled_fails_where_it_cannot_be(tmp_path: Path) -> None:
    done = build(tmp_path, SLUICEGATE_COMPILED="required")

    assert done.returncode != 0
    assert "The build backend returned an error" in done.stderr  # the same build that the test above sees succeed


def test_the_image_fails_uncompiled_and_runs_as_a_number_without_pip() -> None:
    _, first, last = re.split(r"^FROM ", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)

    assert "SLUICEGATE_COMPILED=required" in first
    assert "record scan compiled$" in first
    assert "\nUSER 10001:10001\n" in last
    assert "pip uninstall" in last
    assert 'CMD ["sluicegate", "healthcheck", "--config", "/etc/sluicegate.yaml"]' in last


@pytest.mark.parametrize("missing", ["pyspark", "rich"])
def test_the_pipelines_command_without_its_extra_says_what_to_install(missing: str) -> None:
    program = f"import sys; sys.modules['{missing}'] = None; from sluicegate.pipeline.command import main; main()"
    modules = {"pyspark": "", "rich": "import types; sys.modules['pyspark'] = types.ModuleType('pyspark'); "}[missing]
    done = subprocess.run(
        [sys.executable, "-c", program.replace("sys; ", "sys; " + modules, 1)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("sluicegate-spark: it needs ")
    assert "pip install 'sluicegate[spark]'" in done.stderr
