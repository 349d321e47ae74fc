//! Queries a server, and runs the user's `read` commands.

use std::collections::BTreeMap;
use std::time::Duration;

use mongodb::bson::{Bson, Document, doc};
use seekscope_server::{Server, ServerError};

use super::ServerReplies;
use crate::knob_file::{KnobFile, Route};
use crate::script;

impl ServerReplies {
    /// Queries the server. Commands that it refuses are listed, and the knobs that need them are left out.
    ///
    /// # Errors
    /// Returns an error if it does not answer at all.
    pub async fn ask(server: &Server) -> Result<Self, ServerError> {
        let mut refused = Vec::new();
        let build_info = ask(server, "buildInfo", Bson::Int32(1), &mut refused).await?;
        let parameters = ask(server, "getParameter", "*".into(), &mut refused).await?;
        let options = ask(server, "getCmdLineOpts", Bson::Int32(1), &mut refused).await?;
        let status = ask(server, "serverStatus", Bson::Int32(1), &mut refused).await?;
        let host = ask(server, "hostInfo", Bson::Int32(1), &mut refused).await?;
        Ok(Self {
            build_info,
            parameters,
            options,
            status,
            host,
            refused,
        })
    }
}

async fn ask(
    server: &Server,
    command: &str,
    argument: Bson,
    refused: &mut Vec<(String, String)>,
) -> Result<Document, ServerError> {
    match server.command("admin", doc! { command: argument }).await {
        Err(error @ (ServerError::Failed { .. } | ServerError::NotAuthorised { .. })) => {
            refused.push((command.into(), error.to_string()));
            Ok(Document::new())
        }
        other => other,
    }
}

/// Runs the `read` command of each knob that has one and returns its output, or why it failed.
pub async fn read_scripts(
    file: &KnobFile,
    limit: Duration,
) -> BTreeMap<String, Result<String, String>> {
    let mut printed = BTreeMap::new();
    for entry in &file.knobs {
        if let Route::Command {
            read: Some(read), ..
        } = &entry.set
        {
            let text = script::run(read, None, limit).await;
            let text = text.map_err(|error| error.to_string());
            printed.insert(entry.knob.name.clone(), text);
        }
    }
    printed
}
