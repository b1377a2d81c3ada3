"""The entry point of `sluicegate-spark`, which reports a missing extra before it imports Spark."""

import logging
import sys
import warnings

from sluicegate.pipeline.runs.interruption import Interrupted, raise_on_signals

_EXTRA = frozenset(
    {"confluent_kafka", "google", "jinja2", "matplotlib", "numpy", "pandas", "py4j", "pyarrow", "pyspark", "rich"}
)


def main() -> None:
    """Run the command, or report the package that is missing."""
    raise_on_signals()
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # library warnings are for developers; python -W shows them
    logging.getLogger().addHandler(logging.NullHandler())  # py4j logs a traceback of every error that it raises
    try:
        from sluicegate.pipeline.cli import main as run

        run()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRA:
            raise
        sys.exit(f"sluicegate-spark: {missing} is missing: pip install 'sluicegate[spark]' (in a checkout: make spark)")
    except BaseException:  # typer turns Interrupted into SystemExit
        interrupted = Interrupted.pending()
        if interrupted is None:
            raise
        interrupted.is_reported = True
        sys.stderr.write(f"sluicegate-spark: interrupted ({interrupted}) before any job began\n")
        sys.exit(interrupted.status)
