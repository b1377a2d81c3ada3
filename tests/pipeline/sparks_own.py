"""Provides Spark's own Kafka source, whose rows, options and errors are the oracle for the raw source."""

import pytest
from pyspark import __version__ as spark_version

from sluicegate.pipeline.runs.tables import minor_of

_MINORS = ("4.0", "4.1", "4.2")
"""The profiles in pipeline/jars/pom.xml."""

needs_sparks_own = pytest.mark.skipif(
    minor_of(spark_version) not in _MINORS, reason=f"Maven has Spark's own Kafka source for {', '.join(_MINORS)} only"
)
