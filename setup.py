"""The compiled parts: plain Python files that Cython compiles where a C compiler is at hand.

Everything else is in pyproject.toml. `optional=True`: without a compiler the install goes on and the same files run
interpreted; `sluicegate version` says which. With SLUICEGATE_COMPILED=required it fails instead, with the reason.
"""

import os
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "annotation_typing": False,  # annotations are for people and mypy; C types stand in the .pxd files
}
COMPILED = [
    "protocol/before_login.py",
    "protocol/frame_pool.py",
    "protocol/framing.py",
    "protocol/headers.py",
    "protocol/node_addresses.py",
    "protocol/produce_request.py",
    "protocol/produce_response.py",
    "protocol/records/allowance.py",
    "protocol/records/columns.py",
    "protocol/records/compression.py",
    "protocol/records/contents.py",
    "protocol/records/gzip_members.py",
    "protocol/records/lz4_blocks.py",
    "protocol/records/message_set.py",
    "protocol/records/message_stream.py",
    "protocol/records/pieces.py",
    "protocol/records/plain_buffer.py",
    "protocol/records/rehearsal.py",
    "protocol/records/restamp.py",
    "protocol/records/scan.py",
    "protocol/records/snappy_chunks.py",
    "protocol/records/taking.py",
    "protocol/records/totals.py",
    "protocol/records/zstd_frames.py",
    "protocol/records/zstd_pieces.py",
    "protocol/topic_ids.py",
    "protocol/walk.py",
    "proxy/network/tls_socket.py",
    "proxy/session/connection.py",
    "proxy/session/in_flight.py",
    "proxy/session/pacing.py",
    "validation/in_force.py",
    "validation/rules/asking.py",
    "validation/rules/avro_datum.py",
    "validation/rules/json_text.py",
    "validation/rules/json_weight.py",
    "validation/rules/protobuf_weight.py",
    "validation/rules/rule.py",
    "validation/rules/strict_utf8.py",
]
# The fast lane is native only: without a compiler there is none.
NATIVE = [
    "protocol/records/loaded_libraries.pyx",
    "protocol/records/ordinary_lz4.pyx",
    "proxy/network/giving_way.pyx",
    "proxy/network/plain_socket.pyx",
    "proxy/network/run_delay.pyx",
    "proxy/process/native_clock.pyx",
    "proxy/process/object_memory.pyx",
    "proxy/session/direct_outlet.pyx",
    "proxy/session/fast_lane.pyx",
    "proxy/session/lane_counts.pyx",
    "proxy/session/lane_room.pyx",
    "validation/ordinary.pyx",
    "validation/rules/ordinary_contents.pyx",
    "validation/rules/ordinary_json.pyx",
    "validation/rules/ordinary_json_schema.pyx",
]


def name_of(path: str) -> str:
    """What it is imported as; sluicegate/ links to the folders."""
    return f"sluicegate/{path.rpartition('.')[0]}".replace("/", ".")


extensions = cythonize(
    [
        Extension(name_of(path), [f"sluicegate/{path}"], extra_compile_args=["-O3", "-fwrapv", "-g0"])
        for path in COMPILED + NATIVE
    ],
    compiler_directives=DIRECTIVES,
)
for extension in extensions:
    extension.optional = os.environ.get("SLUICEGATE_COMPILED") != "required"  # cythonize does not carry it over


class WithRevision(build_py):
    """The modules, and the commit that they are of, where SLUICEGATE_REVISION says it (`make wheel` does)."""

    def run(self) -> None:
        super().run()
        revision = os.environ.get("SLUICEGATE_REVISION")
        if revision and not self.editable_mode:
            Path(self.build_lib, "sluicegate", "revision.txt").write_text(f"{revision}\n")


class TaggedByContent(bdist_wheel):
    """A wheel whose tag says where it runs: anywhere if nothing was compiled, else with this C library or a later."""

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


setup(
    ext_modules=extensions,
    cmdclass={"bdist_wheel": TaggedByContent, "build_py": WithRevision},
    options={"build_ext": {"parallel": os.cpu_count()}},
)
