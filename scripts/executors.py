"""Packs the project, uncompiled, for Spark clusters where no wheel can be installed.

Writes dist/sluicegate-executors.zip and dist/sluicegate-spark.py: spark-submit --py-files ZIP sluicegate-spark.py JOB
"""

import zipfile
from pathlib import Path

ROOMS = ("config", "dead_letters", "pipeline", "protocol", "proxy", "validation")
MAIN = "from sluicegate.pipeline.cli import main\n\nmain()\n"

Path("dist").mkdir(exist_ok=True)
Path("dist/sluicegate-spark.py").write_text(MAIN)
with zipfile.ZipFile("dist/sluicegate-executors.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.write("sluicegate/__init__.py")
    for room in ROOMS:
        for file in sorted(Path("sluicegate", room).rglob("*")):
            if file.suffix in {".py", ".properties"}:
                archive.write(file)
