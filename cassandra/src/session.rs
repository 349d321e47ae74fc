//! Manages a connection to the cluster, shared by all virtual users: it carries many requests at once.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use scylla::client::PoolSize;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::response::query_result::{QueryResult, QueryRowsResult};
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency, Statement};
use seekscope_client::{Failure, FailureKind};

use crate::{CqlTarget, failure, keyspace};

/// Time limit for each attempt to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for unmeasured requests, such as creating a table.
const SETUP_LIMIT: Duration = Duration::from_secs(60);
const PAGE_ROWS: i32 = 5_000;

/// A connection to the cluster.
#[derive(Debug)]
pub(crate) struct CqlSession {
    pub(crate) target: CqlTarget,
    pub(crate) session: Session,
    /// Prepared statements by their text. A few dozen at most: one for each shape of request.
    prepared: RwLock<HashMap<String, Arc<Prepared>>>,
    /// Ensures that tables are created one at a time.
    pub(crate) making_tables: tokio::sync::Mutex<()>,
}

/// A statement that the server has prepared.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) statement: PreparedStatement,
    /// Text columns of its table that hold binary data for workloads.
    pub(crate) binary: HashSet<String>,
}

impl CqlSession {
    /// Connects. The driver never retries by itself: retries are left to the engine.
    pub(crate) async fn connect(target: &CqlTarget) -> Result<Self, Failure> {
        let profile = ExecutionProfile::builder()
            .consistency(target.consistency)
            .request_timeout(None)
            .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
            .build();
        let mut builder = SessionBuilder::new()
            .known_nodes(&target.hosts)
            .connection_timeout(CONNECT_LIMIT)
            .pool_size(PoolSize::PerHost(target.connections))
            .keyspaces_to_fetch([target.keyspace.as_str()])
            .tcp_nodelay(true)
            .default_execution_profile_handle(profile.into_handle());
        if let Some((user, password)) = &target.credentials {
            builder = builder.user(user, password);
        }
        let session = builder.build().await;
        Ok(Self {
            target: target.clone(),
            session: session.map_err(|error| failure::of_new_session(&error))?,
            prepared: RwLock::default(),
            making_tables: tokio::sync::Mutex::default(),
        })
    }

    /// Returns a prepared statement; the server prepares it the first time.
    pub(crate) async fn prepared(&self, table: &str, cql: &str) -> Result<Arc<Prepared>, Failure> {
        if let Some(known) = self.known(cql) {
            return Ok(known);
        }
        let statement = self.session.prepare(cql).await;
        let statement = statement.map_err(|error| failure::of_prepare(&error))?;
        let binary = keyspace::binary_columns(self, table).await?;
        let prepared = Arc::new(Prepared { statement, binary });
        let mut all = self
            .prepared
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        all.insert(cql.into(), Arc::clone(&prepared));
        Ok(prepared)
    }

    fn known(&self, cql: &str) -> Option<Arc<Prepared>> {
        let all = self.prepared.read().unwrap_or_else(PoisonError::into_inner);
        all.get(cql).cloned()
    }

    /// Forgets prepared statements after a table was created or dropped, since they may be for an earlier
    /// table.
    pub(crate) fn forget_prepared(&self) {
        let mut all = self
            .prepared
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        all.clear();
    }

    /// Executes a prepared statement with its values.
    pub(crate) async fn execute(
        &self,
        prepared: &Prepared,
        values: impl SerializeRow,
    ) -> Result<QueryResult, Failure> {
        let result = self.session.execute_unpaged(&prepared.statement, values);
        result.await.map_err(|error| failure::of_execution(&error))
    }

    /// Executes a statement that is not part of what is measured, at QUORUM.
    pub(crate) async fn setup(
        &self,
        cql: &str,
        values: impl SerializeRow,
    ) -> Result<QueryResult, Failure> {
        let mut statement = Statement::new(cql);
        statement.set_consistency(Consistency::Quorum);
        statement.set_request_timeout(Some(SETUP_LIMIT));
        let result = self.session.query_unpaged(statement, values).await;
        result.map_err(|error| failure::of_execution(&error))
    }

    /// Executes a statement that returns rows, like [`Self::setup`].
    pub(crate) async fn setup_rows(
        &self,
        cql: &str,
        values: impl SerializeRow,
    ) -> Result<QueryRowsResult, Failure> {
        rows(self.setup(cql, values).await?)
    }

    /// Counts the rows of a table page by page: `COUNT(*)` would exceed the server's time limit.
    pub(crate) async fn count(&self, place: &str, key: &str) -> Result<u64, Failure> {
        let mut statement = Statement::new(format!("SELECT {key} FROM {place}"));
        statement.set_consistency(Consistency::Quorum);
        statement.set_page_size(PAGE_ROWS);
        statement.set_request_timeout(Some(SETUP_LIMIT));
        let prepared = self.session.prepare(statement).await;
        let prepared = prepared.map_err(|error| failure::of_prepare(&error))?;
        let mut state = scylla::response::PagingState::start();
        let mut count = 0;
        loop {
            let page = self.session.execute_single_page(&prepared, (), state);
            let (page, paging) = page.await.map_err(|error| failure::of_execution(&error))?;
            count += rows(page)?.rows_num() as u64;
            match paging.into_paging_control_flow() {
                std::ops::ControlFlow::Break(()) => return Ok(count),
                std::ops::ControlFlow::Continue(next) => state = next,
            }
        }
    }
}

/// Returns the rows of an answer that must have a row set, possibly empty.
pub(crate) fn rows(result: QueryResult) -> Result<QueryRowsResult, Failure> {
    result.into_rows_result().map_err(|error| malformed(&error))
}

/// Returns the failure for an answer that does not fit the request.
pub(crate) fn malformed(error: &dyn std::error::Error) -> Failure {
    Failure::of(FailureKind::Malformed, "Malformed", error.to_string())
}
