//! Implements the engine's client for Cassandra.

use std::sync::Arc;
use std::time::Duration;

use bson::rawdoc;
use futures_util::future::join_all;
use scylla::value::Row;
use seekscope_client::{
    AsyncClient, AsyncClientFactory, BoxFuture, Failure, FailureKind, OwnedReply, Request,
};
use seekscope_run::ClientKind;

use crate::document::{KEY_COLUMN, document_of};
use crate::session::{CqlSession, malformed, rows};
use crate::table::{Table, quoted};
use crate::translate::{Plan, Statement, translate};
use crate::{CqlTarget, index, keyspace};

/// Statements of one request that are in flight at once.
const STATEMENTS_AT_ONCE: usize = 32;
/// Attempts to write to a table that was just created.
const NEW_TABLE_ATTEMPTS: u32 = 50;
const NEW_TABLE_PAUSE: Duration = Duration::from_millis(100);

/// Creates clients that share connections.
#[derive(Debug, Clone)]
pub struct CqlFactory {
    target: CqlTarget,
}

impl CqlFactory {
    pub fn new(target: CqlTarget) -> Self {
        Self { target }
    }
}

impl AsyncClientFactory for CqlFactory {
    fn kind(&self) -> ClientKind {
        ClientKind::Cql
    }

    /// Returns the clients; a keyspace that holds anything of others is refused here.
    fn connect(&self, count: usize) -> BoxFuture<'_, Result<Vec<Box<dyn AsyncClient>>, Failure>> {
        Box::pin(async move {
            let session = Arc::new(CqlSession::connect(&self.target).await?);
            let claimed = keyspace::claim(&session).await;
            claimed.map_err(crate::CqlError::into_failure)?;
            let client = || CqlClient {
                session: Arc::clone(&session),
            };
            Ok((0..count).map(|_| Box::new(client()) as Box<_>).collect())
        })
    }
}

/// The client of one virtual user.
#[derive(Debug)]
struct CqlClient {
    session: Arc<CqlSession>,
}

impl AsyncClient for CqlClient {
    fn send<'a>(
        &'a mut self,
        request: &'a Request,
        reply: &'a mut OwnedReply,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let session = self.session.as_ref();
            match translate(request, &session.target.keyspace)? {
                Plan::Read { table, statement } => read(session, table, &statement, reply).await,
                Plan::Write {
                    table,
                    model,
                    statements,
                } => {
                    let mut done = write(session, table, &statements).await;
                    if let (Err(failure), Some(model)) = (&done, model)
                        && failure.done == 0
                        && (lacks_table(failure) || is_missing(session, table).await?)
                    {
                        let table_of_model = Table::of_document(table, model)?;
                        keyspace::make_table(session, &table_of_model).await?;
                        done = write_to_new(session, table, &statements).await;
                    }
                    // Every write matches a row: the existing one, or the one that it creates.
                    reply.matched = done?;
                    reply.modified = reply.matched;
                    Ok(())
                }
                Plan::CreateIndexes { table, indexes } => {
                    for (name, column) in indexes {
                        index::build(session, table, &name, &column).await?;
                    }
                    Ok(())
                }
                Plan::DropIndex { name } => index::drop(session, &name).await,
                Plan::DropTable { table } => keyspace::drop_table(session, table).await,
                Plan::Count { table } => {
                    let place = format!("{}.{}", quoted(&session.target.keyspace), quoted(table));
                    reply.matched = session.count(&place, &quoted(KEY_COLUMN)).await?;
                    let n = i64::try_from(reply.matched).unwrap_or(i64::MAX);
                    reply.body = Some(rawdoc! { "n": n, "ok": 1.0 });
                    Ok(())
                }
            }
        })
    }
}

/// Writes to a table that was created a moment ago, by us or by another: the schema lists it before the
/// server accepts writes to it.
async fn write_to_new(
    session: &CqlSession,
    table: &str,
    statements: &[Statement<'_>],
) -> Result<u64, Failure> {
    let mut done = write(session, table, statements).await;
    for _ in 0..NEW_TABLE_ATTEMPTS {
        match &done {
            Err(failure) if failure.done == 0 && lacks_table(failure) => {
                tokio::time::sleep(NEW_TABLE_PAUSE).await;
                session.forget_prepared();
                done = write(session, table, statements).await;
            }
            _ => break,
        }
    }
    done
}

/// Recognises Cassandra's words for a table that does not exist, or not yet; there is no error code for that.
fn lacks_table(failure: &Failure) -> bool {
    ["does not exist", "unconfigured table", "Unknown CF"]
        .iter()
        .any(|words| failure.message.contains(words))
}

async fn is_missing(session: &CqlSession, table: &str) -> Result<bool, Failure> {
    Ok(!keyspace::tables(session).await?.iter().any(|t| t == table))
}

async fn read(
    session: &CqlSession,
    table: &str,
    statement: &Statement<'_>,
    reply: &mut OwnedReply,
) -> Result<(), Failure> {
    let prepared = session.prepared(table, &statement.cql).await?;
    let result = session.execute(&prepared, &statement.values).await?;
    let found = rows(result)?;
    reply.returned = found.rows_num() as u64;
    reply.bytes = found.rows_bytes_size() as u64;
    let first = found.maybe_first_row::<Row>();
    if let Some(row) = first.map_err(|error| malformed(&error))? {
        let columns = found.column_specs();
        let names = columns.iter().map(|column| column.name());
        reply.first = Some(document_of(names, row, &prepared.binary));
    }
    Ok(())
}

/// Returns how many were done, or the first failure with how many were done all the same.
async fn write(
    session: &CqlSession,
    table: &str,
    statements: &[Statement<'_>],
) -> Result<u64, Failure> {
    let mut done = 0;
    let mut first_failure = None;
    for some in statements.chunks(STATEMENTS_AT_ONCE) {
        let outcomes = join_all(some.iter().map(|s| write_one(session, table, s))).await;
        for outcome in outcomes {
            match outcome {
                Ok(()) => done += 1,
                Err(failure) => first_failure = first_failure.or(Some(failure)),
            }
        }
        // After a lost connection the next hundred statements cannot succeed either.
        if first_failure.as_ref().is_some_and(ends_the_rest) {
            break;
        }
    }
    match first_failure {
        None => Ok(done),
        Some(failure) => Err(Failure { done, ..failure }),
    }
}

fn ends_the_rest(failure: &Failure) -> bool {
    !matches!(
        failure.kind,
        FailureKind::Timeout | FailureKind::WriteConcern | FailureKind::Transient
    )
}

async fn write_one(
    session: &CqlSession,
    table: &str,
    statement: &Statement<'_>,
) -> Result<(), Failure> {
    let prepared = session.prepared(table, &statement.cql).await?;
    session
        .execute(&prepared, &statement.values)
        .await
        .map(drop)
}
