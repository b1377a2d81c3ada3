"""Contains benchmarks, which are not part of the installed package."""
