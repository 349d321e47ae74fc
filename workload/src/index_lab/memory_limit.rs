//! Sets how much memory the server may use for sorting an index's keys, and restores it.

use bson::{Bson, doc};
use seekscope_server::{Server, ServerError};

const PARAMETER: &str = "maxIndexBuildMemoryUsageMegabytes";

/// A server whose limit was changed. [`MemoryLimit::restore`] restores it; dropping does not, since that
/// requires a command.
#[derive(Debug)]
pub struct MemoryLimit {
    server: Server,
    previous: Bson,
}

impl MemoryLimit {
    /// Sets the limit, MiB; the error is the server's reason if it has no such setting.
    pub async fn set(server: &Server, megabytes: u32) -> Result<Self, ServerError> {
        let reply = server
            .command("admin", doc! { "getParameter": 1, PARAMETER: 1 })
            .await?;
        let previous = reply.get(PARAMETER).cloned().unwrap_or(Bson::Int32(200));
        let set = doc! { "setParameter": 1, PARAMETER: i64::from(megabytes) };
        server.command("admin", set).await?;
        Ok(Self {
            server: server.clone(),
            previous,
        })
    }

    /// Restores the former limit.
    pub async fn restore(self) -> Result<(), ServerError> {
        let set = doc! { "setParameter": 1, PARAMETER: self.previous };
        self.server.command("admin", set).await?;
        Ok(())
    }
}
