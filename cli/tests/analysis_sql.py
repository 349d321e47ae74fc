"""Runs docs/analysis on run directories in DuckDB and in Apache Spark, and prints what both say.

Arguments: the folder with the SQL, and a pattern of run directories. Prints one JSON document:
{engine: {view: [row as object, …]}}. Spark runs in this process, on the loopback interface only.
"""

import json
import os
import sys

VIEWS = ["file_patterns", "path_patterns"]


def statements(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        lines = [line for line in file if not line.lstrip().startswith("--")]
    return [s for s in "".join(lines).split(";") if s.strip()]


def duckdb_rows(folder, runs):
    import duckdb

    database = duckdb.connect()
    database.execute("SET VARIABLE runs = '" + runs + "'")
    for statement in statements(folder, "duckdb_views.sql") + statements(folder, "file_patterns.sql"):
        database.execute(statement)
    answer = {}
    for view in VIEWS:
        result = database.execute(f"SELECT * FROM {view}")
        names = [column[0] for column in result.description]
        answer[view] = [dict(zip(names, row)) for row in result.fetchall()]
    return answer


def spark_rows(folder, runs):
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession

    # One thread, and nothing compiled: the data is small, and starting is what takes time.
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sql("SET runs=" + runs)
    for statement in statements(folder, "spark_views.sql") + statements(folder, "file_patterns.sql"):
        spark.sql(statement)
    answer = {
        view: [row.asDict() for row in spark.sql(f"SELECT * FROM {view}").collect()]
        for view in VIEWS
    }
    spark.stop()
    return answer


if __name__ == "__main__":
    sql, pattern = sys.argv[1:]
    json.dump({"duckdb": duckdb_rows(sql, pattern), "spark": spark_rows(sql, pattern)}, sys.stdout)
