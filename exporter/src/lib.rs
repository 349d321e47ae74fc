//! What `seekscope exporter` tells a monitoring system, without I/O: counters that never go back, a bounded number of
//! time series, and their text.
//!
//! [`registry::Registry`] holds the present figures of all servers. Readings are added to it now and then, and a
//! scrape renders it: [`registry::Registry::page`] says what there is, [`page::Page::text`] writes it down in one of
//! the two text formats. [`files`] decides which files have series of their own, [`server_counters`] says which
//! counters of a server and its host become which metric, and [`metrics`] lists every metric with its help text.

pub mod files;
pub mod findings;
pub mod layout;
pub mod metrics;
pub mod page;
pub mod registry;
pub mod rising;
pub mod server_counters;

pub use files::{Calls, FileCalls, FileName};
pub use findings::FoundProblem;
pub use layout::FileLayout;
pub use metrics::METRICS;
pub use page::{Format, Page};
pub use registry::{OwnUse, Registry, ServerFigures, TraceUse};
