"""Spark as tests start it: what is installed, but for the archive of its Python part.

Python's workers look for it in that archive first, where nothing can be kept compiled: whoever begins them compiles it
anew, a second of each session. Where there is none they find it as any program does, beside this one's libraries.
"""

from pathlib import Path

import pyspark

from sluicegate.pipeline.runs.tables import minor_of

JARS = Path(__file__).parent.parent.parent / ".spark" / minor_of(pyspark.__version__)
_INSTALLED = Path(pyspark.__file__).parent
_MADE = JARS / f"home-{pyspark.__version__}"
_LEFT_OUT = {"python", "__pycache__", "work"}

HOME = _MADE if _MADE.exists() else _INSTALLED


def make() -> None:
    """A folder of links."""
    _MADE.mkdir(exist_ok=True)
    for place in _INSTALLED.iterdir():
        link = _MADE / place.name
        if place.name not in _LEFT_OUT and not link.exists():
            link.unlink(missing_ok=True)  # it may lead to what is no more
            link.symlink_to(place)


if __name__ == "__main__":
    make()
