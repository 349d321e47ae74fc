-- DuckDB 1.1 or newer: the tables that the other files work on.
-- `runs` is a pattern of run directories: any number of runs, of any number of hosts.
-- SET VARIABLE runs = '/collected/*/seekscope-runs/trace-*';

-- `position` is the row's place in its file, the order of completion: it decides between events
-- that started in the same nanosecond.
CREATE OR REPLACE TEMPORARY VIEW events AS
SELECT regexp_replace(filename, '/io[.]parquet$', '') AS run,
       file_row_number AS position,
       CAST(t_ns AS BIGINT) AS t_ns,
       tid, file_id, op,
       CAST("offset" AS BIGINT) AS start_byte,
       CAST(length AS BIGINT) AS length,
       CAST(latency_ns AS BIGINT) AS latency_ns,
       CAST(result AS BIGINT) AS result,
       CAST(flags AS BIGINT) AS flags,
       CAST(device_read_bytes AS BIGINT) AS device_read_bytes
FROM read_parquet(getvariable('runs') || '/io.parquet',
                  filename = true, file_row_number = true, union_by_name = true);

CREATE OR REPLACE TEMPORARY VIEW files AS
SELECT regexp_replace(filename, '/files[.]parquet$', '') AS run,
       file_id, path, role, namespace
FROM read_parquet(getvariable('runs') || '/files.parquet', filename = true, union_by_name = true);
