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
        "Time that the server's threads waited in calls on a file.";
    FILE_ERRORS: Counter "seekscope_file_errors_total"
        "Calls on a file that failed.";
    FILE_BYTES: Counter "seekscope_file_bytes_total"
        "Bytes that calls read from a file or wrote to it.";
    FILE_DEVICE_READ_BYTES: Counter "seekscope_file_device_read_bytes_total"
        "Bytes that reads of a file made the kernel read from the device, read-ahead included.";
    FILE_CACHE_HITS: Counter "seekscope_file_cache_hits_total"
        "Reads of a file that the page cache could answer.";
    FILE_CACHE_MISSES: Counter "seekscope_file_cache_misses_total"
        "Reads of a file that had to read from the device.";

    UP: Gauge "seekscope_up"
        "1 if the server answered within the last 30 s or, where it may not be asked, its process runs.";
    OPERATIONS: Counter "seekscope_mongodb_operations_total"
        "Operations that the server received, by their type.";
    TIMED_OPERATIONS: Counter "seekscope_mongodb_timed_operations_total"
        "Operations whose time the server counts.";
    OPERATION_SECONDS: Counter "seekscope_mongodb_operation_seconds_total"
        "Time that the server took for operations.";
    QUEUED_OPERATIONS: Gauge "seekscope_mongodb_queued_operations"
        "Operations that wait for a lock or a ticket.";
    ACTIVE_CLIENTS: Gauge "seekscope_mongodb_active_clients"
        "Clients whose operations are being worked on or wait.";
    TICKETS_USED: Gauge "seekscope_mongodb_tickets_used"
        "Tickets that operations hold while they use the storage engine.";
    TICKETS: Gauge "seekscope_mongodb_tickets"
        "Tickets that there are.";
    CONNECTIONS: Gauge "seekscope_mongodb_connections"
        "Connections of clients.";
    REPLICATION_LAG: Gauge "seekscope_mongodb_replication_lag_seconds"
        "How far this secondary is behind its primary.";

    CACHE_BYTES: Gauge "seekscope_wiredtiger_cache_bytes"
        "Bytes in WiredTiger's cache.";
    CACHE_DIRTY_BYTES: Gauge "seekscope_wiredtiger_cache_dirty_bytes"
        "Changed bytes in WiredTiger's cache that are not written yet.";
    CACHE_MAX_BYTES: Gauge "seekscope_wiredtiger_cache_max_bytes"
        "Size of WiredTiger's cache.";
    CACHE_READ_BYTES: Counter "seekscope_wiredtiger_cache_read_bytes_total"
        "Bytes that were read into WiredTiger's cache.";
    CACHE_WRITTEN_BYTES: Counter "seekscope_wiredtiger_cache_written_bytes_total"
        "Bytes that were written from WiredTiger's cache.";
    CACHE_PAGES_REQUESTED: Counter "seekscope_wiredtiger_cache_pages_requested_total"
        "Pages that were looked for in WiredTiger's cache.";
    CACHE_PAGES_READ: Counter "seekscope_wiredtiger_cache_pages_read_total"
        "Pages that were not in WiredTiger's cache and were read.";
    APPLICATION_EVICTIONS: Counter "seekscope_wiredtiger_application_evictions_total"
        "Pages that threads of clients had to evict themselves.";
    APPLICATION_EVICTION_SECONDS: Counter "seekscope_wiredtiger_application_eviction_seconds_total"
        "Time that threads of clients spent evicting pages.";
    CHECKPOINTS: Counter "seekscope_wiredtiger_checkpoints_total"
        "Checkpoints.";
    CHECKPOINT_SECONDS: Counter "seekscope_wiredtiger_checkpoint_seconds_total"
        "Time that checkpoints took.";
    CHECKPOINT_RUNNING: Gauge "seekscope_wiredtiger_checkpoint_running"
        "1 while a checkpoint is being taken.";
    CHECKPOINT_LAST: Gauge "seekscope_wiredtiger_checkpoint_last_seconds"
        "Time that the last checkpoint took.";
    LOG_SYNCS: Counter "seekscope_wiredtiger_log_syncs_total"
        "Syncs of the journal.";
    LOG_SYNC_SECONDS: Counter "seekscope_wiredtiger_log_sync_seconds_total"
        "Time that syncs of the journal took.";

    DEVICE_REQUESTS: Counter "seekscope_device_requests_total"
        "Requests that the device under the data completed, whoever sent them.";
    DEVICE_BYTES: Counter "seekscope_device_bytes_total"
        "Bytes of these requests.";
    DEVICE_REQUEST_SECONDS: Counter "seekscope_device_request_seconds_total"
        "Time that these requests took, the time in the queue included.";
    DEVICE_BUSY_SECONDS: Counter "seekscope_device_busy_seconds_total"
        "Time with at least one request in flight.";
    DEVICE_QUEUE_SECONDS: Counter "seekscope_device_queue_seconds_total"
        "Time multiplied by the requests in flight: its rate is the mean queue depth.";

    PROCESS_CPU_SECONDS: Counter "seekscope_process_cpu_seconds_total"
        "CPU time of the server's process.";
    PROCESS_MEMORY: Gauge "seekscope_process_resident_memory_bytes"
        "Memory of the server's process.";
    PROCESS_DEVICE_BYTES: Counter "seekscope_process_device_bytes_total"
        "Bytes that the server's process made the kernel read from devices or write to them.";
    CGROUP_CPU_SECONDS: Counter "seekscope_cgroup_cpu_seconds_total"
        "CPU time of the server's control group.";
    CGROUP_CPU_THROTTLED_SECONDS: Counter "seekscope_cgroup_cpu_throttled_seconds_total"
        "Time for which the control group was held back because its CPU quota was used up.";
    CGROUP_MEMORY: Gauge "seekscope_cgroup_memory_bytes"
        "Memory of the control group with the tightest limit, page cache included.";
    CGROUP_MEMORY_LIMIT: Gauge "seekscope_cgroup_memory_limit_bytes"
        "Limit of this memory.";
    CGROUP_REFAULTS: Counter "seekscope_cgroup_memory_refault_bytes_total"
        "Bytes of files that were read again because the control group had to give them up.";
    PRESSURE: Counter "seekscope_pressure_seconds_total"
        "Time in which some or all tasks of the host waited for a resource.";

    FINDING: Gauge "seekscope_finding"
        "1 for each thing that slows the server down, found in the counters of the last minutes.";
    FINDING_SECONDS: Gauge "seekscope_finding_seconds_per_hour"
        "Waiting that acting on a finding would save at the present load, in seconds per hour.";

    LAYOUT_ORDER_SCORE: Gauge "seekscope_layout_order_score"
        "Order of the leaf pages of a file: 1 as in a file just written in key order, 0 shuffled.";
    LAYOUT_SCAN_SECONDS: Gauge "seekscope_layout_scan_seconds"
        "Predicted time of a scan from a cold cache, now and with the order restored.";
    LAYOUT_FILE_BYTES: Gauge "seekscope_layout_file_bytes"
        "Size of a file.";
    LAYOUT_FREE_BYTES: Gauge "seekscope_layout_free_bytes"
        "Free space inside a file.";
    LAYOUT_LEAF_PAGES: Gauge "seekscope_layout_leaf_pages"
        "Leaf pages of a file.";
    LAYOUT_WALK_TIME: Gauge "seekscope_layout_walk_timestamp_seconds"
        "When the files of a server were last walked, seconds since 1970.";

    BUILD_INFO: Gauge "seekscope_exporter_build_info"
        "1, with the version of the exporter.";
    TRACING: Gauge "seekscope_exporter_tracing"
        "1 if the kernel counts the server's calls on files.";
    LIMITATION: Gauge "seekscope_exporter_limitation"
        "1 for each thing that is not exported.";
    OWN_CPU_SECONDS: Counter "seekscope_exporter_cpu_seconds_total"
        "CPU time of the exporter.";
    OWN_MEMORY: Gauge "seekscope_exporter_resident_memory_bytes"
        "Memory of the exporter.";
    CALL_DELAY: Gauge "seekscope_exporter_call_delay_seconds"
        "Time by which counting lengthens any system call of the host that is no read, write or sync, measured when it began.";
    LOST_CALLS: Counter "seekscope_exporter_lost_calls_total"
        "Calls on files that could not be counted.";
    READING_SECONDS: Gauge "seekscope_exporter_reading_seconds"
        "Time that the last reading of a server's counters took.";
    LAST_READING_TIME: Gauge "seekscope_exporter_last_reading_timestamp_seconds"
        "When a server's counters were last read, seconds since 1970.";
    FILES_IN_OTHER: Gauge "seekscope_exporter_files_in_other"
        "Files that lately had calls and no series of their own.";
    SERIES: Gauge "seekscope_exporter_series"
        "Time series of this page as text, this one included.";
    SERIES_MAX: Gauge "seekscope_exporter_series_max"
        "The bound of --series.";
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
