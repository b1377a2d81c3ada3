"""The compiled parts: plain Python files that Cython compiles where a C compiler is at hand.

Everything else is in pyproject.toml. `optional=True`: without a compiler the install goes on and the same files run
interpreted; `sluicegate version` says which.
"""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "annotation_typing": False,  # annotations are for people and mypy; C types stand in the .pxd files
}
COMPILED = [
    "protocol/frame_pool.py",
    "protocol/framing.py",
    "protocol/headers.py",
    "protocol/produce_request.py",
    "protocol/produce_response.py",
    "protocol/records/columns.py",
    "protocol/records/compression.py",
    "protocol/records/lz4_blocks.py",
    "protocol/records/plain_buffer.py",
    "protocol/records/record_batch.py",
    "protocol/records/scan.py",
    "protocol/records/totals.py",
    "proxy/answer_side.py",
    "proxy/clock.py",
    "proxy/connection.py",
    "proxy/in_flight.py",
    "proxy/judging.py",
    "proxy/memory.py",
    "proxy/observer.py",
    "proxy/produce_gate.py",
    "proxy/request_side.py",
    "proxy/session.py",
    "proxy/topic_names.py",
    "validation/judge.py",
    "validation/policies.py",
    "validation/policy.py",
    "validation/produce.py",
    "validation/record_errors.py",
    "validation/structure.py",
    "validation/timestamps.py",
    "validation/verdict.py",
]

extensions = cythonize(
    [
        Extension(path.removesuffix(".py").replace("/", "."), [path], extra_compile_args=["-O3", "-fwrapv"])
        for path in COMPILED
    ],
    compiler_directives=DIRECTIVES,
)
for extension in extensions:
    extension.optional = True  # cythonize does not carry it over

setup(ext_modules=extensions, options={"build_ext": {"parallel": os.cpu_count()}})
