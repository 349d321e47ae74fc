//! The files must mean the same to DuckDB as to us.

use seekscope_run::{RunDirectory, RunDocument};

use crate::{counter, event, files, interval, python};

#[test]
fn duckdb_reads_the_same_events_and_files() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(parent.path(), &RunDocument::begin("doctor", vec![])).unwrap();
    let mut writer = run.io_writer().unwrap();
    files().iter().for_each(|f| writer.file(f).unwrap());
    let events: Vec<_> = (0..10_000).map(event).collect();
    events.iter().for_each(|e| writer.event(e).unwrap());
    writer.flush().unwrap();
    run.finish_records().unwrap();

    let script = r#"
import duckdb, json, sys
io, files = sys.argv[1] + "/io.parquet", sys.argv[1] + "/files.parquet"
one = lambda sql: duckdb.sql(sql).fetchall()[0]
print(json.dumps({
  "io": one(f"select count(*), sum(t_ns)::bigint, sum(tid)::bigint, count(\"offset\"), max(\"offset\"), min(length)::bigint, "
            f"sum(latency_ns)::bigint, sum(result)::bigint, sum(flags)::bigint, sum(device_read_bytes)::bigint, "
            f"count(*) filter (op = 'pread64') from '{io}'"),
  "files": duckdb.sql(f"select * from '{files}' order by file_id").fetchall(),
  "joined": one(f"select count(*) from '{io}' join '{files}' using (file_id) where role = 'collection'"),
}))
"#;
    let read = python(script, parent.path());

    let sum = |f: fn(&seekscope_run::IoEvent) -> i64| events.iter().map(f).sum::<i64>();
    let offsets: Vec<u64> = events.iter().filter_map(|e| e.offset).collect();
    let expected = serde_json::json!([
        10_000,
        sum(|e| e.t_ns.cast_signed()),
        sum(|e| i64::from(e.tid)),
        offsets.len(),
        offsets.iter().max(),
        events.iter().map(|e| e.length).min(),
        sum(|e| e.latency_ns.cast_signed()),
        sum(|e| i64::from(e.result)),
        sum(|e| i64::from(e.flags.0)),
        sum(|e| i64::from(e.device_read_bytes)),
        1_000,
    ]);
    assert_eq!(read["io"], expected);
    assert_eq!(read["joined"], serde_json::json!([5_000]));
    let first = &files()[0];
    let expected = serde_json::json!([
        0,
        first.path,
        "known",
        254,
        1 << 20,
        u64::MAX - 1,
        1u64 << 42,
        "collection",
        first.namespace,
        "shard0@db1:27018"
    ]);
    assert_eq!(read["files"][0], expected);
    let second = &read["files"][1];
    assert_eq!(
        (&second[8], &second[9]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
}

#[test]
fn duckdb_reads_the_same_intervals() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(parent.path(), &RunDocument::begin("disk", vec![])).unwrap();
    let mut writer = run.interval_writer().unwrap();
    (0..10).for_each(|n| writer.write(&interval(n)).unwrap());
    run.finish_records().unwrap();

    let script = r#"
import duckdb, json, sys
table = duckdb.read_parquet(sys.argv[1] + "/intervals.parquet")
print(json.dumps([dict(zip(table.columns, row)) for row in table.fetchall()]))
"#;
    let read = python(script, parent.path());
    let row = |n: u64| {
        let i = interval(n);
        let mut row = serde_json::json!({
            "step": i.step, "operation": i.operation, "t_ns": i.t_ns,
            "duration_ns": i.duration_ns, "count": i.count, "errors": i.errors, "bytes": i.bytes,
        });
        for (prefix, latency) in [("service", Some(i.latency)), ("response", i.response)] {
            let names = serde_json::to_value(i.latency).unwrap();
            let values = latency.map(|l| serde_json::to_value(l).unwrap());
            for name in names.as_object().unwrap().keys() {
                let value = values.as_ref().map(|v| v[name].clone());
                row[format!("{prefix}_{name}")] = value.unwrap_or_default();
            }
        }
        row
    };
    assert_eq!(read, (0..10).map(row).collect::<serde_json::Value>());
}

#[test]
fn duckdb_reads_the_same_counters() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(parent.path(), &RunDocument::begin("bench", vec![])).unwrap();
    assert_eq!(run.counters().unwrap(), [], "nothing was recorded");
    let counters: Vec<_> = (0..10).map(counter).collect();
    run.counter_writer().unwrap().write(&counters).unwrap();
    run.finish_records().unwrap();
    assert_eq!(run.counters().unwrap(), counters);

    let script = r#"
import duckdb, json, sys
table = duckdb.read_parquet(sys.argv[1] + "/server.parquet")
print(json.dumps([dict(zip(table.columns, row)) for row in table.fetchall()]))
"#;
    let read = python(script, parent.path());
    assert_eq!(read, serde_json::to_value(counters).unwrap());
}
