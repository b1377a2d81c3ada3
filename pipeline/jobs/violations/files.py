"""Files of events that grow after they were read: Spark reads each file once, so what is added later would be missed
without a word.
"""

import json

from pyspark.sql import SparkSession

from sluicegate.pipeline.results import Results

_READ = "files.json"


class ReadFiles:
    """How long each file was when it was read first, kept from run to run."""

    def __init__(self, spark: SparkSession, path: str, results: Results) -> None:
        """`path`: a folder, a file or a glob, as Spark reads it; lengths are looked at now."""
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        self._path = jvm.org.apache.hadoop.fs.Path(path)
        self._files = self._path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        self._results = results
        self._read: dict[str, int] = json.loads(results.read_text(_READ)) if results.has(_READ) else {}
        self._read = self._lengths() | self._read

    def grown(self) -> list[str]:
        """Files that are longer now than when they were read; to be asked when a run ends."""
        lengths = self._lengths()
        self._read = lengths | self._read
        self._results.write_text(_READ, json.dumps(self._read, indent=2) + "\n")
        return sorted(file for file, length in lengths.items() if length > self._read[file])

    def _lengths(self) -> dict[str, int]:
        found = {}
        for match in self._files.globStatus(self._path) or ():
            within = self._files.listStatus(match.getPath()) if match.isDirectory() else [match]
            found.update({file.getPath().toString(): file.getLen() for file in within if file.isFile()})
        return found
