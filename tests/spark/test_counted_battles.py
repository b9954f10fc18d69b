"""Battles counted by Spark, in one process of this machine.

It takes Java and `pip install -e '.[test,spark]'`, in an environment of its own, as Spark is large:
SPARK_LOCAL_IP=127.0.0.1 pytest -m spark tests/spark
"""

import os
import shutil
from importlib.util import find_spec

import pytest
from counted import READINGS, assert_same_battles, assert_same_draws, counted_and_read, write_votes

from jaxeval import DataError, count_battles

# It tells of each new pandas that not all of it is supported.
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:PySpark:FutureWarning")]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("votes") / "votes.parquet"
    write_votes(path)
    return path


@pytest.fixture(scope="module")
def session():
    java = shutil.which("java") or os.environ.get("JAVA_HOME")
    lack = "" if find_spec("pyspark") else "no pyspark: pip install 'jaxeval[spark]'"
    lack = lack if java else "no Java: apt-get install default-jre-headless"
    if lack:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(lack)
    from pyspark.sql import SparkSession

    settings = {"ui.enabled": "false", "sql.shuffle.partitions": "1", "sql.session.timeZone": "Asia/Kathmandu"}
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def relation(session, path):
    return session.read.parquet(str(path)).cache()


@pytest.mark.parametrize("reading", READINGS)
def test_battles(relation, path, reading):
    assert_same_battles(*counted_and_read(relation, path, **READINGS[reading]))


def test_draws(relation, path):
    assert_same_draws(*counted_and_read(relation, path, keep=["language", "tags", "flags", "voter"]))


def test_errors(session, relation):
    with pytest.raises(DataError, match=r"column 'some' has \d\d\d missing values: fill in values"):
        count_battles(relation, winner="some")
    with pytest.raises(DataError, match=r"pyspark cannot count rows by .*: \w+: .*is not true"):
        count_battles(session.sql("SELECT 'x' AS model_a, 'y' AS model_b, assert_true(false) AS winner"))
