"""The Spark session that the pipeline's tests share."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.session import spark_session


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = spark_session(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
