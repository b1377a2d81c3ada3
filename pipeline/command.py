"""Where the command `sluicegate-spark` begins: what it needs beyond the proxy is an extra of the package."""

import sys

_EXTRA = frozenset(
    {"confluent_kafka", "google", "jinja2", "matplotlib", "numpy", "pandas", "py4j", "pyarrow", "pyspark", "rich"}
)


def main() -> None:
    """The console script."""
    try:
        from sluicegate.pipeline.cli import main as run  # noqa: PLC0415
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRA:
            raise
        sys.exit(f"sluicegate-spark: it needs {missing}: pip install 'sluicegate[spark]' (in a checkout: make spark)")
    run()
