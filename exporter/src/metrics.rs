//! Every metric with its help text. `docs/monitoring.md` has the same list; a test compares them.

/// What kind of figure a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Begins at 0 and never goes back.
    Counter,
    Gauge,
    Histogram,
}

/// A metric, which has one series per set of labels.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// The whole name, `_total` of counters included. Units are base units: seconds, bytes.
    pub name: &'static str,
    pub kind: MetricKind,
    /// One line.
    pub help: &'static str,
}

impl Metric {
    /// Returns the name of the family in OpenMetrics, which a counter has without `_total`.
    pub(crate) fn family(&self) -> &'static str {
        self.name.strip_suffix("_total").unwrap_or(self.name)
    }

    /// Returns the unit, if the name ends in one, as OpenMetrics demands.
    pub(crate) fn unit(&self) -> Option<&'static str> {
        ["seconds", "bytes"]
            .into_iter()
            .find(|unit| self.family().ends_with(&format!("_{unit}")))
    }
}

macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal $help:literal;)*) => {
        $(
            #[doc = $help]
            pub static $constant: Metric = Metric {
                name: $name,
                kind: MetricKind::$kind,
                help: $help,
            };
        )*
        /// All metrics.
        pub static METRICS: &[&Metric] = &[$(&$constant),*];
    };
}

metrics! {
    FILE_LATENCY: Histogram "seekscope_file_latency_seconds"
        "Time that the server's threads spent waiting in calls on a file.";
    FILE_ERRORS: Counter "seekscope_file_errors_total"
        "Calls on a file that failed.";
    FILE_BYTES: Counter "seekscope_file_bytes_total"
        "Bytes that calls read from a file or wrote to it.";
    FILE_DEVICE_READ_BYTES: Counter "seekscope_file_device_read_bytes_total"
        "Bytes that the kernel read from the device for reads of a file, including read-ahead.";
    FILE_CACHE_HITS: Counter "seekscope_file_cache_hits_total"
        "Reads of a file that were served from the page cache.";
    FILE_CACHE_MISSES: Counter "seekscope_file_cache_misses_total"
        "Reads of a file that had to read from the device.";

    UP: Gauge "seekscope_up"
        "1 if the server answered within the last 30 s or, without a login, if \
         its process is running.";
    OPERATIONS: Counter "seekscope_mongodb_operations_total"
        "Operations that the server received, by their type.";
    TIMED_OPERATIONS: Counter "seekscope_mongodb_timed_operations_total"
        "Operations whose latency the server records.";
    OPERATION_SECONDS: Counter "seekscope_mongodb_operation_seconds_total"
        "Time that the server spent on operations.";
    QUEUED_OPERATIONS: Gauge "seekscope_mongodb_queued_operations"
        "Operations that are waiting for a lock or a ticket.";
    ACTIVE_CLIENTS: Gauge "seekscope_mongodb_active_clients"
        "Clients whose operations are running or waiting.";
    TICKETS_USED: Gauge "seekscope_mongodb_tickets_used"
        "Tickets that operations hold while they use the storage engine.";
    TICKETS: Gauge "seekscope_mongodb_tickets"
        "Total number of tickets.";
    CONNECTIONS: Gauge "seekscope_mongodb_connections"
        "Connections of clients.";
    REPLICATION_LAG: Gauge "seekscope_mongodb_replication_lag_seconds"
        "Replication lag of this secondary.";

    CACHE_BYTES: Gauge "seekscope_wiredtiger_cache_bytes"
        "Bytes in WiredTiger's cache.";
    CACHE_DIRTY_BYTES: Gauge "seekscope_wiredtiger_cache_dirty_bytes"
        "Dirty bytes in WiredTiger's cache.";
    CACHE_MAX_BYTES: Gauge "seekscope_wiredtiger_cache_max_bytes"
        "Size of WiredTiger's cache.";
    CACHE_READ_BYTES: Counter "seekscope_wiredtiger_cache_read_bytes_total"
        "Bytes read into WiredTiger's cache.";
    CACHE_WRITTEN_BYTES: Counter "seekscope_wiredtiger_cache_written_bytes_total"
        "Bytes written from WiredTiger's cache.";
    CACHE_PAGES_REQUESTED: Counter "seekscope_wiredtiger_cache_pages_requested_total"
        "Pages requested from WiredTiger's cache.";
    CACHE_PAGES_READ: Counter "seekscope_wiredtiger_cache_pages_read_total"
        "Pages read into WiredTiger's cache because they were not in it.";
    APPLICATION_EVICTIONS: Counter "seekscope_wiredtiger_application_evictions_total"
        "Pages that application threads had to evict themselves.";
    APPLICATION_EVICTION_SECONDS: Counter "seekscope_wiredtiger_application_eviction_seconds_total"
        "Time that application threads spent evicting pages.";
    CHECKPOINTS: Counter "seekscope_wiredtiger_checkpoints_total"
        "Checkpoints.";
    CHECKPOINT_SECONDS: Counter "seekscope_wiredtiger_checkpoint_seconds_total"
        "Total time spent on checkpoints.";
    CHECKPOINT_RUNNING: Gauge "seekscope_wiredtiger_checkpoint_running"
        "1 while a checkpoint is running.";
    CHECKPOINT_LAST: Gauge "seekscope_wiredtiger_checkpoint_last_seconds"
        "Duration of the most recent checkpoint.";
    LOG_SYNCS: Counter "seekscope_wiredtiger_log_syncs_total"
        "Syncs of the journal.";
    LOG_SYNC_SECONDS: Counter "seekscope_wiredtiger_log_sync_seconds_total"
        "Total time spent on syncs of the journal.";

    DEVICE_REQUESTS: Counter "seekscope_device_requests_total"
        "Requests of all processes that the device that holds the data completed.";
    DEVICE_BYTES: Counter "seekscope_device_bytes_total"
        "Bytes read and written by these requests.";
    DEVICE_REQUEST_SECONDS: Counter "seekscope_device_request_seconds_total"
        "Total latency of these requests, including the time in the queue.";
    DEVICE_BUSY_SECONDS: Counter "seekscope_device_busy_seconds_total"
        "Time with at least one request in flight.";
    DEVICE_QUEUE_SECONDS: Counter "seekscope_device_queue_seconds_total"
        "Time weighted by the number of requests in flight: its rate is the mean queue depth.";

    PROCESS_CPU_SECONDS: Counter "seekscope_process_cpu_seconds_total"
        "CPU time used by the server's process.";
    PROCESS_MEMORY: Gauge "seekscope_process_resident_memory_bytes"
        "Memory used by the server's process.";
    PROCESS_DEVICE_BYTES: Counter "seekscope_process_device_bytes_total"
        "Bytes that the kernel read from devices or wrote to them for the server's process.";
    CGROUP_CPU_SECONDS: Counter "seekscope_cgroup_cpu_seconds_total"
        "CPU time used by the server's control group.";
    CGROUP_CPU_THROTTLED_SECONDS: Counter "seekscope_cgroup_cpu_throttled_seconds_total"
        "Time for which the control group was throttled because its CPU quota was used up.";
    CGROUP_MEMORY: Gauge "seekscope_cgroup_memory_bytes"
        "Memory of the control group with the tightest limit, including the page cache.";
    CGROUP_MEMORY_LIMIT: Gauge "seekscope_cgroup_memory_limit_bytes"
        "Memory limit of this control group.";
    CGROUP_REFAULTS: Counter "seekscope_cgroup_memory_refault_bytes_total"
        "Bytes of files that had to be read again because the control group had reclaimed them.";
    PRESSURE: Counter "seekscope_pressure_seconds_total"
        "Time in which some or all tasks of the host were stalled on a resource.";

    FINDING: Gauge "seekscope_finding"
        "1 for each finding about what slows the server down, from the counters \
         of the last minutes.";
    FINDING_SECONDS: Gauge "seekscope_finding_seconds_per_hour"
        "Waiting time that acting on a finding would save at the present load, \
         in seconds per hour.";

    LAYOUT_ORDER_SCORE: Gauge "seekscope_layout_order_score"
        "Order of the leaf pages of a file: 1 if they lie in key order, 0 if they are shuffled.";
    LAYOUT_SCAN_SECONDS: Gauge "seekscope_layout_scan_seconds"
        "Predicted duration of a scan from a cold cache, as the file is now and \
         with its order restored.";
    LAYOUT_FILE_BYTES: Gauge "seekscope_layout_file_bytes"
        "Size of a file.";
    LAYOUT_FREE_BYTES: Gauge "seekscope_layout_free_bytes"
        "Free space inside a file.";
    LAYOUT_LEAF_PAGES: Gauge "seekscope_layout_leaf_pages"
        "Leaf pages of a file.";
    LAYOUT_WALK_TIME: Gauge "seekscope_layout_walk_timestamp_seconds"
        "Time of the last walk over the files of a server, in seconds since 1970.";

    BUILD_INFO: Gauge "seekscope_exporter_build_info"
        "Always 1; the label holds the version of the exporter.";
    TRACING: Gauge "seekscope_exporter_tracing"
        "1 if the server's calls on files are counted in the kernel.";
    LIMITATION: Gauge "seekscope_exporter_limitation"
        "1 for each kind of figure that is not exported.";
    OWN_CPU_SECONDS: Counter "seekscope_exporter_cpu_seconds_total"
        "CPU time used by the exporter.";
    OWN_MEMORY: Gauge "seekscope_exporter_resident_memory_bytes"
        "Memory used by the exporter.";
    CALL_DELAY: Gauge "seekscope_exporter_call_delay_seconds"
        "Time that counting adds to each system call of the host other than reads, writes and \
         syncs, measured when counting began.";
    LOST_CALLS: Counter "seekscope_exporter_lost_calls_total"
        "Calls on files that could not be counted.";
    READING_SECONDS: Gauge "seekscope_exporter_reading_seconds"
        "Duration of the last reading of a server's counters.";
    LAST_READING_TIME: Gauge "seekscope_exporter_last_reading_timestamp_seconds"
        "Time of the last reading of a server's counters, in seconds since 1970.";
    FILES_IN_OTHER: Gauge "seekscope_exporter_files_in_other"
        "Files that had calls recently and have no series of their own.";
    SERIES: Gauge "seekscope_exporter_series"
        "Number of time series on this page in the text format, including this one.";
    SERIES_MAX: Gauge "seekscope_exporter_series_max"
        "The limit set with --series.";
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_page_lists_every_metric_and_no_other() {
        let page = include_str!("../../docs/monitoring.md");
        let rows = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `seekscope_"));
        let listed: HashSet<(String, &str)> = rows
            .map(|row| {
                let (name, rest) = row.split_once("` | ").unwrap();
                (
                    format!("seekscope_{name}"),
                    rest.split(" | ").next().unwrap(),
                )
            })
            .collect();
        let there = METRICS.iter().map(|metric| {
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
            };
            (metric.name.to_owned(), kind)
        });
        let there: HashSet<(String, &str)> = there.collect();
        let differing: Vec<_> = listed.symmetric_difference(&there).collect();
        assert!(differing.is_empty(), "{differing:?}");
    }

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        let names: HashSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len(), "each once");
        for metric in METRICS {
            let is_counter = metric.kind == MetricKind::Counter;
            assert_eq!(metric.name.ends_with("_total"), is_counter, "{metric:?}");
            assert!(metric.name.starts_with("seekscope_"), "{metric:?}");
            assert!(
                metric.help.ends_with('.') || metric.help.contains(','),
                "{metric:?}"
            );
            assert!(!metric.help.contains(['\n', '\\']), "{metric:?}");
        }
    }
}
