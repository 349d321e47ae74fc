//! Runs virtual users against a server and hands over what they did, second by second.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use seekscope_run::ClientKind;

use crate::wire::RawTarget;
use crate::{AsyncClientFactory, ClientError, Ended, Job, Second, Workload};

/// What operations are sent with.
#[derive(Debug, Clone)]
pub enum ClientSpec {
    /// Our own client on the wire protocol.
    Raw(RawTarget),
    /// A library: the official driver, or Cassandra's.
    Async(Arc<dyn AsyncClientFactory>),
}

impl ClientSpec {
    pub fn kind(&self) -> ClientKind {
        match self {
            Self::Raw(_) => ClientKind::Raw,
            Self::Async(factory) => factory.kind(),
        }
    }
}

/// Does a stretch of work. Blocks until the work, its time or `stop` ends it; `stop` is noticed within
/// 200 ms whatever the server does. `each` is called on this thread about once a second and once at the
/// end; all threads are joined and connections closed when this returns.
///
/// An error means that the work could not begin, or that this process cannot go on; failures of requests
/// are in [`Ended::failures`].
pub fn run(
    client: &ClientSpec,
    workload: &dyn Workload,
    job: &Job,
    stop: &AtomicBool,
    each: &mut dyn FnMut(Second),
) -> Result<Ended, ClientError> {
    let _ = (client, workload, job, stop, each);
    Err(ClientError::Job {
        text: "not yet".into(),
    })
}
