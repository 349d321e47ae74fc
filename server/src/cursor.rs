//! Answers that come in batches, read to their end.

use mongodb::bson::Document;

use crate::server::{ANSWER_LIMIT, Server, ServerError, milliseconds};

/// What is taken of an answer with one document for each shard: more than any cluster has, so only a server that never
/// ends is cut short.
pub const SHARDS_MAX: usize = 10_000;

impl Server {
    /// Runs a command that answers with a cursor, and returns the documents of all its batches: a server sends at most
    /// 101 at first. After `most` of them the rest is left.
    ///
    /// # Errors
    /// Fails if the server refuses or breaks off, or answers with something else than a cursor over documents.
    pub async fn documents(
        &self,
        database: &str,
        command: Document,
        most: usize,
    ) -> Result<Vec<Document>, ServerError> {
        let name = command.keys().next().cloned().unwrap_or_default();
        let failed = |error| self.error(&name, &error);
        let cursor = self.database(database).run_cursor_command(command).await;
        let mut cursor = cursor.map_err(failed)?;
        let mut all = Vec::new();
        while all.len() < most && cursor.advance().await.map_err(failed)? {
            all.push(cursor.deserialize_current().map_err(failed)?);
        }
        Ok(all)
    }

    /// The same for what servers answer at once, with a limit of some seconds on both sides for all batches together.
    ///
    /// # Errors
    /// Fails as [`Self::documents`] does, and if the answer is not complete in time.
    pub async fn documents_in_time(
        &self,
        database: &str,
        mut command: Document,
        most: usize,
    ) -> Result<Vec<Document>, ServerError> {
        let name = command.keys().next().cloned().unwrap_or_default();
        command.insert("maxTimeMS", milliseconds(ANSWER_LIMIT));
        self.within(ANSWER_LIMIT, &name, self.documents(database, command, most))
            .await
    }
}
