//! Sends a workload's operations to a server and times them.
//!
//! A [`Workload`] defines what is sent; [`Actor`]s are its virtual users, one for each operation in flight. The
//! engine asks them for [`Request`]s, passes these to a client and tells the actors what came back. There is
//! one trait for clients, with several behind it: our own on the wire protocol, the official driver and, in a
//! separate crate, Cassandra's.
//!
//! Read [`actor`] first, then [`request`] and [`reply`], then [`engine`].

pub mod actor;
pub mod async_client;
pub mod bson_writer;
pub mod choose;
pub mod driver;
pub mod engine;
pub mod error;
pub mod job;
pub mod reply;
pub mod request;
mod schedule;
pub mod second;
mod server_codes;
pub mod wire;

pub use actor::{Actor, ActorPlace, Operation, OperationId, Verdict, Workload};
pub use async_client::{AsyncClient, AsyncClientFactory, BoxFuture, OwnedReply};
pub use bson_writer::BsonWriter;
pub use choose::{Choice, Wanted, choose};
pub use driver::DriverTarget;
pub use engine::{ClientSpec, run};
pub use error::ClientError;
pub use job::{EndReason, Ended, FailureCount, Job, Retries, ScheduleKind};
pub use reply::{Failure, FailureKind, Reply};
pub use request::{READING_COMMANDS, Request};
pub use second::{OperationSecond, Second};
pub use wire::RawTarget;
