"""The compiled parts: plain Python files that Cython compiles where a C compiler is at hand.

Everything else is in pyproject.toml. `optional=True`: without a compiler the install goes on and the same files run
interpreted; `sluicegate version` says which.
"""

from Cython.Build import cythonize
from setuptools import Extension, setup

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
}

extensions = cythonize(
    [Extension("protocol.records.scan", ["protocol/records/scan.py"], extra_compile_args=["-O3", "-fwrapv"])],
    compiler_directives=DIRECTIVES,
)
for extension in extensions:
    extension.optional = True  # cythonize does not carry it over

setup(ext_modules=extensions)
