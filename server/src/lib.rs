//! The server under study: how it is found or started, what it is, its process, its files and its disk.
//!
//! Nothing here prints, reads the environment or ends the process; paths that differ between hosts and tests
//! (`/proc`, `/sys/fs/cgroup`, where private data may lie) are passed as arguments.
//!
//! Read [`local_server`] first (a server of our own), then [`server`] (any server, by its connection string).

pub mod binary;
mod cgroup;
pub mod cluster;
mod cursor;
pub mod data_files;
pub mod driver_error;
pub mod examination;
mod hello;
mod identity;
mod keeper;
pub mod leftovers;
pub mod local_server;
pub mod local_server_options;
pub mod namespace;
pub mod open_files;
pub mod page_cache;
pub mod private_server;
pub mod process;
pub mod redact;
mod replies;
pub mod sampling;
pub mod server;
pub mod server_use;
pub mod sightings;
pub mod slow_disk;
pub mod slow_operations;
pub mod storage;
pub mod tcp_listener;
mod unix_listener;
pub mod workspace;

pub use binary::{BinaryError, ServerBinary, ServerKind};
pub use cursor::SHARDS_MAX;
pub use data_files::{FileMap, Unnamed};
pub use hello::Hello;
pub use leftovers::{Leftover, Leftovers};
pub use local_server::{LocalServer, LocalServerError, Stopped};
pub use local_server_options::{LocalServerOptions, ServerRole};
pub use namespace::{Namespace, NamespaceError};
pub use page_cache::{PageCacheError, Residency};
pub use private_server::PrivateServer;
pub use process::{ProcFs, ProcessError, ProcessIdentity};
pub use redact::{redact_text, redact_uri};
pub use replies::{first_batch, float, number};
pub use sampling::{CpuTimes, GroupMemory, Sampler, processors_allowed};
pub use server::{DEFAULT_PORT, Server, ServerError, ServerFacts};
pub use server_use::{ServerUse, ServerUsed};
pub use sightings::{NoServer, NoServerKind, Sightings};
pub use slow_disk::{CgroupTree, SlowDisk, SlowDiskError, SlowDiskSpec};
pub use slow_operations::{SlowOperation, SlowOperations};
pub use storage::{directory_bytes, storage_facts};
pub use workspace::{Workspace, WorkspaceError};
