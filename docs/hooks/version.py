"""Each page of the site shows the version and the date of the commit from which the site was built."""

import subprocess
import tomllib
from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Add the version to `copyright`, which themes show on each page. MkDocs calls this before it reads the pages."""
    folder = Path(config["config_file_path"]).parent
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    command = ["git", "log", "-1", "--format=%cs"]
    dated = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603  # no input
    date = f", {dated.stdout.strip()}" if dated.returncode == 0 else ""  # not of an archive without a repository
    config["copyright"] = f"sluicegate {project['version']}{date}"
    return config
