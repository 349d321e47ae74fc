//! The run directory: what one execution of a seekscope command leaves behind.
//!
//! Producers (`trace`, `workload`, …) write the record types of this crate; readers (`pattern`, `report`) work
//! from them alone, so a run copied from another host can be analysed without root, eBPF or a server. Nothing
//! here talks to a database or prints.
//!
//! Read [`document`] first (what `run.json` says), then [`io_event`] (one row per read or write).

pub mod advice;
pub mod bench;
mod bench_index;
mod bench_shards;
pub mod clock;
mod cluster;
pub mod control_groups;
mod counted_requests;
pub mod counter_sample;
pub mod device;
pub mod device_model;
pub mod direct_files;
pub mod directory;
mod disk_measurement;
pub mod document;
pub mod error;
pub mod error_kind;
pub mod examination;
pub mod file_record;
pub mod file_totals;
pub mod host;
mod host_settings;
pub mod interval;
pub mod io_event;
mod io_spool;
mod kernel_files;
mod kind;
pub mod latency;
pub mod latency_log;
pub mod latency_log_reader;
pub mod layout;
mod lines;
pub mod mounts;
mod operations_seen;
pub mod page_cache;
mod parquet_file;
pub mod prefetch;
pub mod pressure;
pub mod process_io;
pub mod reorder;
mod shell;
pub mod surroundings;
pub mod thread_record;
pub mod tune;
pub mod units;
mod visible;

pub use advice::{
    AdviceRecord, AdviceSample, AdviceSince, AdviceTrial, AdviceVerdict, AdvisedCollection,
    CollectionUse, IndexUseCounted, LeftOutQueries, QueryShape, ShapeCost, ShapeSource, SortField,
    StoringWay, TracedReads, WayKind,
};
pub use bench::{
    Arrivals, BenchMeasurement, BenchStep, ClientKind, Confirmation, LoadPoint, OperationResult,
    RateVerdict, Saturation, SchemaExperiment, SchemaShape, Steady, StorageFacts, Verification,
};
pub use bench_index::{BenchIndexBuild, BuildReads, IndexedFile};
pub use bench_shards::{
    BenchSharding, RouterCost, ShardFigures, ShardKind, ShardShare, ShardedCollection, StepShards,
};
pub use clock::{ClockOffset, monotonic_ns, shifted};
pub use cluster::{ClusterRecord, FailedMoves, SentOperations, ShardOnDisk, SpreadCollection};
pub use counted_requests::{CountedRequests, RequestCause};
pub use counter_sample::CounterSample;
pub use device::{BlockLayer, DeviceFacts};
pub use device_model::{DepthPoint, DeviceModel, SizePoint, SyncPoint, TokenBucket};
pub use direct_files::has_open_directly;
pub use directory::{
    CounterWriter, IntervalWriter, IoWriter, LeafWriter, RunDirectory, TrialJournal,
};
pub use disk_measurement::{
    AccessKind, DirectFacts, DiskMeasurement, DiskStep, EngineKind, JobFacts, JobOutcome,
    OperationOutcome, ReadAdvice, StepGroup,
};
pub use document::{
    BLOCK_REQUESTS, CacheState, Disk, Finding, Gain, IndexBuild, Limitation, OperationKind,
    Outcome, Phase, ProcessIo, RunDocument, TargetFacts, TraceCoverage, TraceFacts, TracerCost,
};
pub use error::RunError;
pub use error_kind::{ErrorKind, Kinded};
pub use examination::{
    COUNTERS_OF_FTDC, COUNTERS_OF_MEMBER, CollectionFacts, Deployment, DiskAbility, EarlierRun,
    ExaminationCost, ExaminationRecord, FindingChange, FtdcFacts, HostSettings, IndexFacts,
    IndexOption, Lacking, MemberOnHost, MemberRecord, MemberRun, MemberState, NamedValue,
    OplogFacts, RoleChange, Silence, Untold, WorkCompared,
};
pub use file_record::{FileRecord, FileRole, PathState, SORT_FILES, TEMPORARY_FOLDER, labelled};
pub use file_totals::FileTotals;
pub use host::HostFacts;
pub use interval::Interval;
pub use io_event::{
    BlockRequest, CUT_OFF_LATENCY_NS, CacheOutcome, IoEvent, IoFlags, IoKind, IoLayer, IoOp,
};
pub use kind::RunKind;
pub use latency::{LatencySummary, latency_histogram, latency_of_any};
pub use latency_log::{
    LatencyLogWriter, parse_tag, response_tag_of, service_tag_of_response, tag_of,
};
pub use latency_log_reader::{LatencyInterval, LatencyIntervals};
pub use layout::{
    DataState, DeviceExtents, LayoutFile, LayoutMeasurement, LayoutMember, LayoutMoment,
    LeafRecord, NameSource, OrderDecay, PredictedScan, ScanOrder,
};
pub use operations_seen::{
    ConditionSeen, FilterSeen, JoinSeen, KeySeen, LoggedOperations, OperationSeen,
};
pub use parquet_file::JoinedParquetWriter;
pub use prefetch::{
    PassedScan, PrefetchForSync, PrefetchGain, PrefetchPace, PrefetchRecord, PrefetchSummary,
};
pub use pressure::{IoPressure, pressure_totals};
pub use process_io::{ProcessDeviceIo, proc_io_counter};
pub use reorder::{
    Clustering, OrderLasts, ReorderBlocking, ReorderMeasurement, ReorderPlan, ReorderScan,
    ReorderSpace, ReorderTask, ReorderTime, ReorderVerdict, Reordered, WriteRate, WritersStop,
};
pub use shell::shell_quoted;
pub use surroundings::{Distortion, IoLimit, Surroundings};
pub use thread_record::ThreadRecord;
pub use tune::{KnobValue, KnobValues, TuneRecord, TuneTrial};
pub use visible::{misleads, visible};
