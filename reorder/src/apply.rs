//! The steps in their order.

use std::future::Future;

use seekscope_run::Reordered;
use seekscope_server::Server;

use crate::{Progress, ReorderError, Request};

/// Reorders a collection. When `stop` is ready before the swap, or anything fails, everything is
/// rolled back. Dropping the future instead leaves what is recorded for [`crate::resume`] or
/// [`crate::rollback`].
pub async fn apply(
    _server: &Server,
    _request: &mut Request,
    _progress: &dyn Progress,
    _stop: impl Future<Output = ()> + Send,
) -> Result<Reordered, ReorderError> {
    Err(ReorderError::Stopped)
}
