#!/usr/bin/env python3
"""Notes in the pages for users that nothing has been published yet, with what to do in a clone until then.

scripts/release/unpublished.py               writes the notes
scripts/release/unpublished.py --check       fails if a page has another note
scripts/release/unpublished.py --published   removes the notes; the first release does this once
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BEGIN, END = "<!-- not published -->", "<!-- /not published -->"
NOTE = re.compile(rf"{BEGIN}\n.*?{END}\n\n", re.DOTALL)
_CLONE = "In a clone of the repository, `make setup` installs the command in `.venv`"
_IMAGE = (
    "In a clone of the repository, `make image` builds `sluicegate:0.1.0`: write it instead of the image's name on this "
    "page."
)
NOTES = {
    "README.md": "Use a clone: the commands for pip and containers below work from the first release on.",
    "docs/index.md": f"Ask in the issues of the repository. {_CLONE}, and `make run` starts the demo.",
    "docs/tutorial.md": f"{_CLONE}: run `make setup` and `source .venv/bin/activate` instead of the commands of step 1 "
    "before `sluicegate demo`.",
    "docs/install.md": f"{_CLONE}, `make wheel` builds the wheel in `dist/`, and `make image` builds the images.",
    "docs/verify-a-release.md": "The commands of this page work from the first release on.",
    "docs/how-to/container.md": _IMAGE,
    "docs/how-to/compose.md": _IMAGE,
    "docs/how-to/kubernetes-helm.md": "In a clone of the repository, `make image` builds the images, and the chart is "
    "`deploy/helm/sluicegate`. Push an image to a registry of yours, and name it with `image.repository`.",
}
"""What to do until the first release, by page."""


def written(page: str, text: str) -> str:
    """Return the text of a page with its note, which follows the title."""
    title, _, rest = NOTE.sub("", text).partition("\n\n")
    note = f"{BEGIN}\n> **Beta, not published yet.** {NOTES[page]}\n{END}"
    return f"{title}\n\n{note}\n\n{rest}"


def main(arguments: list[str]) -> None:
    """Run one of the commands above."""
    differs = []
    for page in NOTES:
        before = (ROOT / page).read_text(encoding="utf-8")
        after = NOTE.sub("", before) if arguments == ["--published"] else written(page, before)
        if before != after:
            differs.append(page)
            if arguments != ["--check"]:
                (ROOT / page).write_text(after, encoding="utf-8")
    if arguments == ["--check"] and differs:
        sys.exit(f"run scripts/release/unpublished.py: {', '.join(differs)}")


main(sys.argv[1:])
