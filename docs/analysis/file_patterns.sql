-- Patterns of every file of every run, and of every path over all runs. Runs unchanged in DuckDB and
-- in Spark SQL, after duckdb_views.sql or spark_views.sql. The definitions are those of
-- pattern/src/access.rs and run/src/io_event.rs, and a test holds all three to the same numbers.

-- Reads and writes of files (not syncs, not requests of disks).
CREATE OR REPLACE TEMPORARY VIEW calls AS
SELECT *,
       -- Bytes transferred.
       CASE WHEN result > 0 THEN result ELSE 0 END AS bytes,
       -- Where a read's bytes came from; NULL where that is not known. Flags: 1 the thread slept,
       -- 2 it sent reads to the disk, 16 O_DIRECT, 128 unknown. Device bytes beyond what the call
       -- itself needs (whole pages, and one more if it is not aligned) are read-ahead.
       CASE WHEN direction <> 'read' OR result < 0 THEN NULL
            WHEN (flags & 16) <> 0 THEN 'direct'
            WHEN (flags & 128) <> 0 THEN NULL
            WHEN (flags & 2) <> 0
                 AND ((flags & 1) <> 0
                      OR device_read_bytes <= result + 4095 - (result + 4095) % 4096 + 4096) THEN 'miss'
            WHEN (flags & 1) <> 0 THEN 'waited for others'
            ELSE 'hit' END AS cache_outcome
FROM (SELECT *,
             CASE WHEN op IN ('read', 'pread64', 'readv', 'preadv', 'preadv2',
                              'io_uring_read', 'aio_read', 'mmap_fault') THEN 'read'
                  WHEN op IN ('write', 'pwrite64', 'writev', 'pwritev', 'pwritev2',
                              'io_uring_write', 'aio_write') THEN 'write' END AS direction
      FROM events) AS named
WHERE direction IS NOT NULL;

-- Accesses with a known place and at least one byte, each with the one before it in the same file
-- and direction: `gap` is from the end of that one to the start of this one, bytes.
CREATE OR REPLACE TEMPORARY VIEW accesses AS
SELECT run, file_id, direction, start_byte, bytes, start_byte + bytes AS end_byte,
       start_byte - previous_start AS distance,
       start_byte - previous_end AS gap
FROM (SELECT *,
             LAG(start_byte) OVER in_order AS previous_start,
             LAG(start_byte + bytes) OVER in_order AS previous_end
      FROM calls
      WHERE start_byte IS NOT NULL AND bytes > 0
      WINDOW in_order AS (PARTITION BY run, file_id, direction ORDER BY t_ns, position)) AS paired;

-- Steps counted. Sequential: at most the kernel's read-ahead window of 131072 bytes further.
CREATE OR REPLACE TEMPORARY VIEW step_counts AS
SELECT run, file_id, direction,
       COUNT(*) AS accesses,
       COUNT(gap) AS steps,
       COUNT(CASE WHEN gap = 0 THEN 1 END) AS contiguous_steps,
       COUNT(CASE WHEN gap BETWEEN 0 AND 131072 THEN 1 END) AS sequential_steps,
       COUNT(CASE WHEN distance < 0 THEN 1 END) AS backward_steps,
       -- Places the disk had to go to, and stretches of contiguous accesses.
       COUNT(*) - COUNT(CASE WHEN gap BETWEEN 0 AND 131072 THEN 1 END) AS seeks,
       COUNT(*) - COUNT(CASE WHEN gap = 0 THEN 1 END) AS runs_of_accesses,
       MIN(start_byte) AS first_byte,
       MAX(end_byte) AS last_byte
FROM accesses
GROUP BY run, file_id, direction;

-- How often the commonest distance occurs among steps that are not sequential.
CREATE OR REPLACE TEMPORARY VIEW strides AS
SELECT run, file_id, direction, MAX(times) AS commonest_steps
FROM (SELECT run, file_id, direction, distance, COUNT(*) AS times
      FROM accesses
      WHERE gap IS NOT NULL AND NOT (gap BETWEEN 0 AND 131072)
      GROUP BY run, file_id, direction, distance) AS distances
GROUP BY run, file_id, direction;

-- The pattern of one file of one run in one direction.
CREATE OR REPLACE TEMPORARY VIEW patterns AS
SELECT c.*,
       contiguous_steps / (1.0E0 * GREATEST(steps, 1)) AS contiguous_share,
       sequential_steps / (1.0E0 * GREATEST(steps, 1)) AS sequential_share,
       backward_steps / (1.0E0 * GREATEST(steps, 1)) AS backward_share,
       accesses / (1.0E0 * runs_of_accesses) AS run_accesses_mean,
       CASE WHEN accesses < 8 THEN 'few'
            WHEN sequential_steps >= 0.8E0 * steps THEN 'sequential'
            WHEN COALESCE(commonest_steps, 0) >= 0.8E0 * steps THEN 'strided'
            WHEN sequential_steps <= 0.2E0 * steps THEN 'random'
            ELSE 'mixed' END AS kind
FROM step_counts AS c
LEFT JOIN (SELECT run AS stride_run, file_id AS stride_file_id, direction AS stride_direction,
                  commonest_steps FROM strides) AS s
  ON run = stride_run AND file_id = stride_file_id AND direction = stride_direction;

-- Calls counted, with exact latencies (nearest rank), per file of a run.
CREATE OR REPLACE TEMPORARY VIEW call_counts AS
SELECT run, file_id, direction,
       COUNT(*) AS calls, SUM(bytes) AS bytes,
       COUNT(CASE WHEN result < 0 THEN 1 END) AS errors,
       MAX(CASE WHEN 2 * (latency_rank - 1) < of_calls THEN latency_ns END) AS latency_p50_ns,
       MAX(CASE WHEN 100 * (latency_rank - 1) < 99 * of_calls THEN latency_ns END) AS latency_p99_ns,
       COUNT(CASE WHEN cache_outcome = 'hit' THEN 1 END) AS hits,
       COUNT(CASE WHEN cache_outcome = 'miss' THEN 1 END) AS misses,
       COUNT(CASE WHEN cache_outcome = 'waited for others' THEN 1 END) AS waited_for_others,
       COUNT(CASE WHEN cache_outcome = 'direct' THEN 1 END) AS direct
FROM (SELECT *,
             ROW_NUMBER() OVER (PARTITION BY run, file_id, direction ORDER BY latency_ns) AS latency_rank,
             COUNT(*) OVER (PARTITION BY run, file_id, direction) AS of_calls
      FROM calls) AS ranked
GROUP BY run, file_id, direction;

-- One row per file of a run.
CREATE OR REPLACE TEMPORARY VIEW file_patterns AS
SELECT c.run, c.file_id, MAX(f.path) AS path, MAX(f.role) AS role, MAX(f.namespace) AS namespace,
       COALESCE(SUM(CASE WHEN c.direction = 'read' THEN c.calls END), 0) AS reads,
       COALESCE(SUM(CASE WHEN c.direction = 'read' THEN c.bytes END), 0) AS read_bytes,
       COALESCE(SUM(CASE WHEN c.direction = 'read' THEN c.errors END), 0) AS read_errors,
       MAX(CASE WHEN c.direction = 'read' THEN c.latency_p50_ns END) AS read_latency_p50_ns,
       MAX(CASE WHEN c.direction = 'read' THEN c.latency_p99_ns END) AS read_latency_p99_ns,
       MAX(CASE WHEN c.direction = 'read' THEN p.kind END) AS read_step_kind,
       MAX(CASE WHEN c.direction = 'read' THEN p.accesses END) AS read_accesses,
       MAX(CASE WHEN c.direction = 'read' THEN p.contiguous_share END) AS read_contiguous_share,
       MAX(CASE WHEN c.direction = 'read' THEN p.sequential_share END) AS read_sequential_share,
       MAX(CASE WHEN c.direction = 'read' THEN p.backward_share END) AS read_backward_share,
       MAX(CASE WHEN c.direction = 'read' THEN p.seeks END) AS read_seeks,
       MAX(CASE WHEN c.direction = 'read' THEN p.run_accesses_mean END) AS read_run_accesses_mean,
       COALESCE(SUM(CASE WHEN c.direction = 'write' THEN c.calls END), 0) AS writes,
       COALESCE(SUM(CASE WHEN c.direction = 'write' THEN c.bytes END), 0) AS write_bytes,
       COALESCE(SUM(CASE WHEN c.direction = 'write' THEN c.errors END), 0) AS write_errors,
       MAX(CASE WHEN c.direction = 'write' THEN c.latency_p50_ns END) AS write_latency_p50_ns,
       MAX(CASE WHEN c.direction = 'write' THEN c.latency_p99_ns END) AS write_latency_p99_ns,
       MAX(CASE WHEN c.direction = 'write' THEN p.kind END) AS write_step_kind,
       MAX(CASE WHEN c.direction = 'write' THEN p.accesses END) AS write_accesses,
       MAX(CASE WHEN c.direction = 'write' THEN p.contiguous_share END) AS write_contiguous_share,
       MAX(CASE WHEN c.direction = 'write' THEN p.sequential_share END) AS write_sequential_share,
       MAX(CASE WHEN c.direction = 'write' THEN p.backward_share END) AS write_backward_share,
       MAX(CASE WHEN c.direction = 'write' THEN p.seeks END) AS write_seeks,
       MAX(CASE WHEN c.direction = 'write' THEN p.run_accesses_mean END) AS write_run_accesses_mean,
       SUM(c.hits) AS hits,
       SUM(c.misses) AS misses,
       SUM(c.waited_for_others) AS waited_for_others,
       SUM(c.direct) AS direct,
       SUM(c.hits) / (1.0E0 * NULLIF(SUM(c.hits + c.misses + c.waited_for_others + c.direct), 0)) AS hit_share,
       SUM(c.misses) / (1.0E0 * NULLIF(SUM(c.hits + c.misses + c.waited_for_others + c.direct), 0)) AS miss_share
FROM call_counts AS c
LEFT JOIN patterns AS p ON p.run = c.run AND p.file_id = c.file_id AND p.direction = c.direction
LEFT JOIN files AS f ON f.run = c.run AND f.file_id = c.file_id
GROUP BY c.run, c.file_id;

-- One row per path and direction over all runs and hosts: steps lead from access to access of the same
-- run only, and shares weigh every step alike.
CREATE OR REPLACE TEMPORARY VIEW path_patterns AS
SELECT l.path, l.direction,
       COUNT(DISTINCT l.run) AS runs, COUNT(*) AS calls, SUM(l.bytes) AS bytes,
       MAX(CASE WHEN 2 * (l.latency_rank - 1) < l.of_calls THEN l.latency_ns END) AS latency_p50_ns,
       MAX(CASE WHEN 100 * (l.latency_rank - 1) < 99 * l.of_calls THEN l.latency_ns END) AS latency_p99_ns,
       COUNT(CASE WHEN l.cache_outcome = 'hit' THEN 1 END) AS hits,
       COUNT(CASE WHEN l.cache_outcome = 'miss' THEN 1 END) AS misses,
       MAX(s.accesses) AS accesses,
       MAX(s.contiguous_share) AS contiguous_share,
       MAX(s.sequential_share) AS sequential_share,
       MAX(s.backward_share) AS backward_share,
       MAX(s.seeks) AS seeks,
       MAX(s.run_accesses_mean) AS run_accesses_mean
FROM (SELECT named.*,
             ROW_NUMBER() OVER (PARTITION BY path, direction ORDER BY latency_ns) AS latency_rank,
             COUNT(*) OVER (PARTITION BY path, direction) AS of_calls
      FROM (SELECT c.*, n.path AS path
            FROM calls AS c
            JOIN files AS n ON n.run = c.run AND n.file_id = c.file_id) AS named) AS l
LEFT JOIN (SELECT n.path AS path, p.direction AS direction,
                  SUM(accesses) AS accesses,
                  SUM(contiguous_steps) / (1.0E0 * GREATEST(SUM(steps), 1)) AS contiguous_share,
                  SUM(sequential_steps) / (1.0E0 * GREATEST(SUM(steps), 1)) AS sequential_share,
                  SUM(backward_steps) / (1.0E0 * GREATEST(SUM(steps), 1)) AS backward_share,
                  SUM(seeks) AS seeks,
                  SUM(accesses) / (1.0E0 * SUM(runs_of_accesses)) AS run_accesses_mean
           FROM patterns AS p
           JOIN files AS n ON n.run = p.run AND n.file_id = p.file_id
           GROUP BY n.path, p.direction) AS s
  ON s.path = l.path AND s.direction = l.direction
GROUP BY l.path, l.direction;
