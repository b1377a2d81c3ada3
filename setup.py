"""The compiled parts: files that Cython compiles if a C compiler is installed.

Everything else is in pyproject.toml. `optional=True`: without a compiler the installation succeeds and the same files
run interpreted; `sluicegate version` reports which. SLUICEGATE_COMPILED=required fails instead, with the reason;
SLUICEGATE_COMPILED=no compiles nothing.
"""

import os
import re
import sysconfig
import tomllib
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

# Indices are checked as in Python. A file without these checks states in its first lines why this is safe.
DIRECTIVES = {
    "language_level": 3,
    "cdivision": True,
    "initializedcheck": False,
    "annotation_typing": False,  # annotations are for people and mypy; C types are in the .pxd files
}
SHARED = "sluicegate.protocol.cython_shared"
"""What Cython generates for each file with a typed memoryview, once instead of 14 times."""
ROOMS = ("protocol", "config", "validation", "dead_letters", "proxy", "pipeline")


def compiled_files() -> list[str]:
    """The files that are compiled: each .pyx, and each .py with a .pxd of the same name beside it."""
    rooms = [Path("sluicegate", room) for room in ROOMS]  # in an sdist the folders are only there
    declared = [file for room in rooms for file in room.rglob("*.pxd")]
    native = [file for room in rooms for file in room.rglob("*.pyx")]
    plain = [file.with_suffix(".py") for file in declared if file.with_suffix(".py").exists()]
    return sorted(str(file.relative_to("sluicegate")) for file in native + plain)


def name_of(path: str) -> str:
    """Return the module name of a path; sluicegate/ links to the folders."""
    return f"sluicegate/{path.rpartition('.')[0]}".replace("/", ".")


def extensions() -> list[Extension]:
    """Return the compiled files as C, written by as many processes as there are processors."""
    if os.environ.get("SLUICEGATE_COMPILED") == "no":
        return []
    sources = {name_of(path): f"sluicegate/{path}" for path in compiled_files()}
    sources[SHARED] = f"{SHARED.replace('.', '/')}.c"  # written by cythonize
    made: list[Extension] = cythonize(
        [Extension(name, [path], extra_compile_args=["-O3", "-fwrapv", "-g0"]) for name, path in sources.items()],
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
        nthreads=os.cpu_count() or 1,
    )
    for extension in made:
        extension.optional = os.environ.get("SLUICEGATE_COMPILED") != "required"  # cythonize drops it
    return made


_LINK = re.compile(r"(!?\[[^\]]*\]\()(?!https?://|#)([^)]+\))")


def index_readme(text: str, source: str, version: str) -> str:
    """Return README.md for a package index, which has no files: links lead to those of the release in the repository.

    `source`: the address of the repository on GitHub.
    """

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link[1].startswith("!") else "blob"
        return f"{link[1]}{source}/{kind}/v{version}/{link[2]}"

    return _LINK.sub(absolute, text)


def long_description() -> str:
    """Return the text of the package's page."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    return index_readme(Path("README.md").read_text(), project["urls"]["Source"], project["version"])


REVISION = Path("sluicegate", "revision.txt")


def revision() -> str:
    """Return the commit of SLUICEGATE_REVISION, which `make wheel` sets, or of the sdist; empty without either."""
    packed = REVISION.read_text().strip() if REVISION.exists() else ""
    return os.environ.get("SLUICEGATE_REVISION") or packed


class WithRevision(build_py):
    """The modules, and the commit that they are of."""

    def run(self) -> None:
        super().run()
        if revision() and not self.editable_mode:
            (Path(self.build_lib) / REVISION).write_text(f"{revision()}\n")


class SourcesWithRevision(sdist):
    """The sources, and the commit that they are of, for wheels that are built from them."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        if revision():
            (Path(base_dir) / REVISION).write_text(f"{revision()}\n")


class TaggedByContent(bdist_wheel):
    """A wheel tagged by content: universal if nothing was compiled, otherwise for this C library or a later one."""

    def get_tag(self) -> tuple[str, str, str]:
        build = self.get_finalized_command("build_ext")
        if build.inplace or build.editable_mode:
            return super().get_tag()
        if not any(Path(file).exists() for file in build.get_outputs()):
            self.root_is_pure = True
            return "py3", "none", "any"
        python, abi, platform = super().get_tag()
        return python, abi, c_library_tag(platform)


def c_library_tag(platform: str) -> str:
    """PEP 600 and 656: `linux_x86_64` would claim every Linux, whatever its C library."""
    system, _, machine = platform.partition("_")
    if system != "linux":
        return platform
    if "musl" in str(sysconfig.get_config_var("SOABI")):
        return f"musllinux_1_2_{machine}"
    _, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition("glibc ")
    return f"manylinux_{version.replace('.', '_')}_{machine}" if version else platform


if __name__ == "__main__":  # not in the processes that generate C
    setup(
        long_description=long_description(),
        long_description_content_type="text/markdown",
        ext_modules=extensions(),
        cmdclass={"bdist_wheel": TaggedByContent, "build_py": WithRevision, "sdist": SourcesWithRevision},
        options={"build_ext": {"parallel": os.cpu_count()}},
    )
