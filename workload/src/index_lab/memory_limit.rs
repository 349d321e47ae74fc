//! How much memory the server may sort an index's keys in: set, and put back.

use bson::{Bson, doc};
use seekscope_server::{Server, ServerError};

const PARAMETER: &str = "maxIndexBuildMemoryUsageMegabytes";

/// A server whose limit was changed. [`MemoryLimit::restore`] puts it back; dropping does not, since
/// that takes a command.
#[derive(Debug)]
pub struct MemoryLimit {
    server: Server,
    previous: Bson,
}

impl MemoryLimit {
    /// Sets the limit, MiB; the error is the server's reason where it has no such setting.
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

    /// Puts the former limit back.
    pub async fn restore(self) -> Result<(), ServerError> {
        let set = doc! { "setParameter": 1, PARAMETER: self.previous };
        self.server.command("admin", set).await?;
        Ok(())
    }
}
