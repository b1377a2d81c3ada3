"""Tests the contents of a wheel, its platform tag, and its single top-level name."""

import os
import re
import shutil
import site
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.broker.proxy_process import ProxyProcess
from tests.oracle.kafka_java import ROOT
from tests.packaging.built import ROOMS, build_wheel, copy_and_build_source, wheel_of


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the source, and an sdist and a wheel built from it."""
    return copy_and_build_source(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def wheel(source: Path) -> Path:
    return wheel_of(source)


@pytest.fixture(scope="module")
def published_wheel(request: pytest.FixtureRequest) -> Path:
    """Return the wheel in SLUICEGATE_WHEEL (`make wheel-check`), otherwise a wheel without compiled modules."""
    given = os.environ.get("SLUICEGATE_WHEEL")
    if given:
        return Path(given).resolve()
    found: Path = request.getfixturevalue("wheel")
    return found


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Return an environment with the libraries but without sluicegate, and with user modules that have the names of our
    folders."""
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = site_packages(folder)
    (packages / "libraries.pth").write_text("\n".join(site.getsitepackages()))  # .pth files there are not read
    for room in ROOMS:
        (packages / f"{room}.py").write_text("MINE = True\n")
    return folder


def site_packages(environment: Path) -> Path:
    (found,) = environment.glob("lib/python*/site-packages")
    return found


def run(*command: object, cwd: Path, **variables: str) -> str:
    """Run a command without the checkout on its path and return its output. Fails if the command fails."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_wheel_without_compiled_modules_has_a_universal_tag(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.endswith((".c", ".so"))]
    needed = ("py.typed", "protocol/framing.pxd", "proxy/fastpath/fast_path.pyi", "pipeline/commands/log4j2.properties")
    assert {f"sluicegate/{name}" for name in needed} <= set(names)
    assets = {f"sluicegate/{file.relative_to(ROOT)}" for file in (ROOT / "proxy" / "webui" / "assets").rglob("*.*")}
    assert len(assets) > 5
    assert assets <= set(names)
    assert any(name.endswith(".dist-info/licenses/proxy/webui/assets/vendor/LICENSES.txt") for name in names)
    modules = [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]
    assert {f"sluicegate/{file.relative_to(ROOT)}" for file in modules} <= set(names)


def test_the_page_of_the_package_has_only_links_that_work_on_an_index(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (each for each in packed.namelist() if each.endswith("/METADATA"))
        page = packed.read(name).decode()

    targets = re.findall(r"\]\(([^)\s]+)\)", page)
    assert [target for target in targets if not target.startswith("https://")] == []
    version = wheel.name.split("-")[1]
    assert f"https://github.com/OWNER/REPO/blob/v{version}/docs/install.md#with-systemd" in targets
    assert f"https://github.com/OWNER/REPO/raw/v{version}/docs/pictures/web-ui-light.png" in targets
    assert "Project-URL: Documentation, https://" in page


def test_the_package_has_one_name_and_runs_beside_user_modules_config_and_proxy(
    wheel: Path, environment: Path, tmp_path: Path
) -> None:
    before = set(site_packages(environment).iterdir())
    python = environment / "bin" / "python"
    run(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--python", python, wheel, cwd=tmp_path)

    added = {place.name for place in set(site_packages(environment).iterdir()) - before}
    assert {name for name in added if not name.endswith(".dist-info")} == {"sluicegate"}
    mine = "import " + ", ".join(ROOMS) + "; import sluicegate; print(config.MINE, proxy.MINE, sluicegate.__file__)"
    assert run(python, "-c", mine, cwd=tmp_path).split() == [
        "True",
        "True",
        str(site_packages(environment) / "sluicegate" / "__init__.py"),
    ]
    for room in ROOMS:  # modules next to the program come first
        (tmp_path / f"{room}.py").write_text("MINE = True\n")
    begin = "from sluicegate.proxy.cli.main import main; main()"
    assert run(python, "-c", begin, "version", cwd=tmp_path).startswith("sluicegate ")
    assert run(environment / "bin" / "sluicegate", "version", cwd=tmp_path).startswith("sluicegate ")
    assert "profile" in run(environment / "bin" / "sluicegate-spark", "--help", cwd=tmp_path)


def test_pip_install_alone_gives_a_proxy_without_a_compiler(
    published_wheel: Path, kafka_bootstrap: str, tmp_path: Path
) -> None:
    folder = tmp_path / "alone"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    run(
        sys.executable,
        "-m",
        "uv",
        "pip",
        "install",
        "--quiet",
        "--python",
        folder / "bin/python",
        published_wheel,
        cwd=tmp_path,
    )
    command = folder / "bin" / "sluicegate"
    alone = {"PATH": str(folder / "bin"), "PYTHONPATH": ""}
    file = tmp_path / "sluicegate.yaml"
    file.write_text("upstream: {bootstrap: ['h:1']}\nlisten: {bootstrap: '127.0.0.1:19092'}\n")

    compiled = "none-any" not in published_wheel.name
    assert run(command, "version", cwd=tmp_path, **alone).splitlines()[0].endswith("scan compiled") is compiled
    assert run(command, "check", file, cwd=tmp_path, **alone).endswith(": ok\n")
    assert "bootstrap:" in run(command, "bootstrap", kafka_bootstrap, cwd=tmp_path, **alone)
    proxy = ProxyProcess(tmp_path, kafka_bootstrap)
    proxy.command = [str(command)]
    proxy.environment = alone
    try:
        assert proxy.start().get("/readyz")[0] == 200
    finally:
        proxy.stop()


def test_spark_executors_validate_from_the_zip(source: Path, environment: Path, tmp_path: Path) -> None:
    run("make", "executors", f"PYTHON={sys.executable}", cwd=source)
    archive = source / "dist" / "sluicegate-executors.zip"
    program = tmp_path / "program.py"
    program.write_text(
        "from pyspark.sql import SparkSession\n"
        "from sluicegate.pipeline.functions import diagnose, register_functions\n"
        "def where(_):\n"
        "    import config\n"
        "    from sluicegate.pipeline.source import datasource\n"
        "    from sluicegate.protocol.records.scan import is_compiled\n"
        "    from sluicegate.validation import produce\n"
        "    return config.MINE, is_compiled(), datasource.__file__, produce.__file__\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "register_functions(spark)\n"
        "print(*spark.sparkContext.parallelize([0], 1).map(where).collect()[0])\n"
        "by_sql = spark.sql('SELECT sluicegate_diagnose(id, id) FROM range(1)')\n"
        "print(*(row[0] for row in spark.range(1).select(diagnose('id', 'id')).union(by_sql).collect()), sep='; ')\n"
    )
    python = str(environment / "bin" / "python")
    submit = Path(sys.executable).with_name("spark-submit")

    told = run(
        submit, "--master", "local[1]", "--conf", "spark.ui.enabled=false", "--py-files", archive, program,
        cwd=tmp_path, PYSPARK_PYTHON=python, PYSPARK_DRIVER_PYTHON=python,
    ).splitlines()  # fmt: skip

    mine, is_compiled, *files = told[0].split()
    assert (mine, is_compiled) == ("True", "False")
    assert all(archive.name in file for file in files), told
    assert told[1] == "is 0, probably never set; is 0, probably never set"
    job = source / "dist" / "sluicegate-spark.py"
    assert "profile" in run(python, job, "--help", cwd=tmp_path, PYTHONPATH=str(archive))


def test_no_module_is_imported_by_its_folder_name_alone() -> None:
    """Such an import works in a checkout and creates a second copy of the module."""
    room = "|".join(ROOMS)
    imported = re.compile(rf"^\s*(?:from (?:{room})[.\w]* c?import|c?import (?:{room})(?:\.|$))", re.MULTILINE)
    kinds = (".py", ".pyi", ".pyx", ".pxd")
    code = [file for room in (*ROOMS, "bench", "tests") for file in (ROOT / room).rglob("*") if file.suffix in kinds]
    assert len(code) > 400
    assert [str(file) for file in code if imported.search(file.read_text()) and file != Path(__file__)] == []


def test_a_build_that_requires_compilation_fails_without_a_compiler(source: Path, tmp_path: Path) -> None:
    """Cython's output exists, unlike in an sdist; only the C compiler fails."""
    shutil.copytree(source, tmp_path / "again", symlinks=True)

    done = build_wheel(tmp_path / "again", "--wheel", SLUICEGATE_COMPILED="required")

    assert done.returncode != 0
    assert "The build backend returned an error" in done.stderr  # the source from which the wheel above was built


def test_a_wheel_that_is_built_from_an_sdist_has_its_commit(source: Path, tmp_path: Path) -> None:
    options = ("--out-dir", str(tmp_path))
    assert (
        build_wheel(source, "--sdist", *options, SLUICEGATE_COMPILED="no", SLUICEGATE_REVISION="0a1b2c").returncode == 0
    )
    (packed,) = tmp_path.glob("*.tar.gz")

    done = build_wheel(source, "--wheel", *options, str(packed), SLUICEGATE_COMPILED="no", SLUICEGATE_REVISION="")

    assert done.returncode == 0, done.stderr
    (built,) = tmp_path.glob("*.whl")
    assert zipfile.ZipFile(built).read("sluicegate/revision.txt") == b"0a1b2c\n"


def test_the_image_requires_compilation_and_runs_with_a_numeric_user_without_pip() -> None:
    _, build, extras, runtime, rules, plain = re.split(r"^FROM ", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)

    assert "SLUICEGATE_COMPILED=required" in build
    assert "record scan compiled$" in build
    assert "\nUSER 10001:10001\n" in runtime
    assert "pip uninstall" in runtime
    assert 'CMD ["sluicegate", "healthcheck", "--config", "/etc/sluicegate.yaml"]' in runtime
    assert 'ENTRYPOINT ["sluicegate"]\nCMD ["run", "--config", "/etc/sluicegate.yaml"]' in runtime
    unit = (ROOT / "deploy/systemd/sluicegate.service").read_text()
    malloc = r"MALLOC_\w+=\d+"
    assert re.findall(malloc, runtime) == re.findall(malloc, unit) != []
    for stage in (build, extras):
        assert "/opt/sluicegate/bin/sluicegate-spark" in stage
    assert "[rules,topic]" in extras
    assert rules.startswith("runtime AS rules\nCOPY --from=build-rules ")
    assert plain.startswith("runtime AS plain\nCOPY --from=build ")  # the last stage is built without --target


@pytest.mark.parametrize("missing", ["pyspark", "rich"])
def test_the_pipelines_command_without_its_extra_reports_what_to_install(missing: str) -> None:
    program = f"import sys; sys.modules['{missing}'] = None; from sluicegate.pipeline.command import main; main()"
    present = ("pyspark", "pyspark.errors", "pyspark.sql", "py4j", "py4j.protocol")
    modules = {
        "pyspark": "",
        "rich": f"from unittest.mock import MagicMock; sys.modules.update((name, MagicMock()) for name in {present}); ",
    }[missing]
    done = subprocess.run(
        [sys.executable, "-c", program.replace("sys; ", "sys; " + modules, 1)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith(f"sluicegate-spark: {missing} is missing: ")
    assert "pip install 'sluicegate[spark]'" in done.stderr
