//! What `seekscope exporter` tells a monitoring system, without I/O: counters that never go back, a bounded number of
//! time series, and their encoding.
//!
//! [`registry::Registry`] holds the present figures of all servers. Readings are added to it now and then, and a
//! scrape renders it: [`registry::Registry::page`] says what there is, [`page::Page::body`] writes it down in the
//! [`Format`] that the scraper wants. [`files`] decides which files have series of their own, [`latencies`] makes
//! histograms of what the kernel counts, [`server_counters`] says which counters of a server and its host become which
//! metric, and [`metrics`] lists every metric with its help text.

pub mod files;
pub mod findings;
pub mod format;
pub mod latencies;
pub mod layout;
pub mod metrics;
pub mod page;
mod protobuf;
pub mod registry;
pub mod rising;
pub mod server_counters;
mod text;

pub use files::{Calls, FileCalls, FileName};
pub use findings::FoundProblem;
pub use format::{Format, TextFormat};
pub use latencies::Latencies;
pub use layout::FileLayout;
pub use metrics::METRICS;
pub use page::Page;
pub use registry::{OwnUse, Registry, ServerFigures, TraceUse};
