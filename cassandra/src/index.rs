//! Builds secondary indexes, and waits until every node has built its part.

use std::time::Duration;

use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::statement::{Consistency, Statement};
use seekscope_client::Failure;

use crate::failure;
use crate::session::{CqlSession, rows};
use crate::table::quoted;

/// How often each node is asked; a build's time may be off by this much.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Each node's own list of completed index builds. Its `table_name` is the keyspace's.
const BUILT: &str =
    "SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = ? AND index_name = ?";

/// Builds an index and waits until it is complete, however long that takes.
pub(crate) async fn build(
    session: &CqlSession,
    table: &str,
    name: &str,
    column: &str,
) -> Result<(), Failure> {
    let using = session
        .target
        .index
        .map_or(String::new(), |kind| format!(" USING '{}'", kind.cql()));
    let create = format!(
        "CREATE INDEX {} ON {}.{} ({}){using}",
        quoted(name),
        quoted(&session.target.keyspace),
        quoted(table),
        quoted(column)
    );
    session.setup(&create, ()).await?;
    let cluster = session.session.get_cluster_state();
    for node in cluster.get_nodes_info() {
        let mut question = Statement::new(BUILT);
        question.set_consistency(Consistency::One);
        let only_this = NodeIdentifier::HostId(node.host_id);
        question
            .set_load_balancing_policy(Some(SingleTargetLoadBalancingPolicy::new(only_this, None)));
        while !is_built(session, &question, name).await? {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
    Ok(())
}

async fn is_built(session: &CqlSession, question: &Statement, name: &str) -> Result<bool, Failure> {
    let values = (&session.target.keyspace, name);
    let answer = session.session.query_unpaged(question.clone(), values);
    let answer = answer
        .await
        .map_err(|error| failure::of_execution(&error))?;
    Ok(rows(answer)?.rows_num() > 0)
}

/// Drops an index; a missing one is not an error.
pub(crate) async fn drop(session: &CqlSession, name: &str) -> Result<(), Failure> {
    let keyspace = quoted(&session.target.keyspace);
    let cql = format!("DROP INDEX IF EXISTS {keyspace}.{}", quoted(name));
    session.setup(&cql, ()).await.map(std::mem::drop)
}
