-- Apache Spark 3.5 or newer: the tables that the other files work on.
-- `runs` is a pattern of run directories: any number of runs, of any number of hosts.
-- SET runs = /collected/*/seekscope-runs/trace-*;

-- `position` is the row's place in its file, the order of completion: it decides between events
-- that started in the same nanosecond.
CREATE OR REPLACE TEMPORARY VIEW events AS
SELECT regexp_replace(regexp_replace(_metadata.file_path, '/io[.]parquet$', ''), '^file:/+', '/') AS run,
       _metadata.row_index AS position,
       CAST(t_ns AS BIGINT) AS t_ns,
       tid, file_id, op,
       CAST(`offset` AS BIGINT) AS start_byte,
       CAST(length AS BIGINT) AS length,
       CAST(latency_ns AS BIGINT) AS latency_ns,
       CAST(result AS BIGINT) AS result,
       CAST(flags AS BIGINT) AS flags,
       CAST(device_read_bytes AS BIGINT) AS device_read_bytes
FROM parquet.`${runs}/io.parquet`;

CREATE OR REPLACE TEMPORARY VIEW files AS
SELECT regexp_replace(regexp_replace(_metadata.file_path, '/files[.]parquet$', ''), '^file:/+', '/') AS run,
       file_id, path, role, namespace
FROM parquet.`${runs}/files.parquet`;
