"""Where the command `sluicegate-spark` begins: what it needs beyond the proxy is an extra of the package."""

import logging
import sys
import warnings

from sluicegate.pipeline.interruption import Interrupted, raise_on_signals

_EXTRA = frozenset(
    {"confluent_kafka", "google", "jinja2", "matplotlib", "numpy", "pandas", "py4j", "pyarrow", "pyspark", "rich"}
)


def main() -> None:
    """The console script."""
    raise_on_signals()
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # for people who write programs; python -W shows them
    logging.getLogger().addHandler(logging.NullHandler())  # py4j logs, with a traceback, what it raises as well
    try:
        from sluicegate.pipeline.cli import main as run  # noqa: PLC0415

        run()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRA:
            raise
        sys.exit(f"sluicegate-spark: it needs {missing}: pip install 'sluicegate[spark]' (in a checkout: make spark)")
    except (Interrupted, SystemExit):  # typer makes the one of the other
        interrupted = Interrupted.raised
        if interrupted is None or interrupted.is_reported:
            raise
        sys.stderr.write(f"sluicegate-spark: interrupted ({interrupted}) before anything began\n")
        sys.exit(interrupted.status)
