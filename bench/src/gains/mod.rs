//! What `reorder` and `prefetch` gain: a collection that was aged by random updates ([`aged`]), cold
//! scans and index builds of it on several disks and with little memory ([`cold_server`], [`activity`],
//! [`confinement`]), and the figures of interleaved pairs ([`figures`]).

pub mod activity;
pub mod aged;
pub mod cold_server;
pub mod confinement;
mod disk_limits;
pub mod figures;
pub mod memory_group;

pub use activity::Activity;
pub use cold_server::{ColdServer, Conditions, Hosts};
pub use confinement::Confinement;
pub use disk_limits::DiskLimits;
pub use figures::Pairs;
