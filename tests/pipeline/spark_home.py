"""Provides the Spark that tests start: the installed Spark without the archive of its Python part.

Spark's Python workers would import from that archive, in which Python cannot store compiled files. Each session would
therefore compile the modules again, which takes a second. Without the archive, the workers import the installed
package.
"""

from pathlib import Path

import pyspark

from sluicegate.pipeline.runs.tables import minor_of

JARS = Path(__file__).parent.parent.parent / ".spark" / minor_of(pyspark.__version__)
_INSTALLED = Path(pyspark.__file__).parent
_MADE = JARS / f"home-{pyspark.__version__}"
_LEFT_OUT = {"python", "__pycache__", "work"}

HOME = _MADE if _MADE.exists() else _INSTALLED


def make_spark_home() -> None:
    """Make a folder of links to the installed Spark."""
    _MADE.mkdir(exist_ok=True)
    for place in _INSTALLED.iterdir():
        link = _MADE / place.name
        if place.name not in _LEFT_OUT and not link.exists():
            link.unlink(missing_ok=True)  # the link's target may no longer exist
            link.symlink_to(place)


if __name__ == "__main__":
    make_spark_home()
