//! Finds operations in the copy that the server still works on: commands of a client that was killed continue
//! without it.

use std::time::Duration;

use bson::{Bson, Document, doc};
use seekscope_server::{Namespace, ServerError, first_batch};

use crate::replies::says;
use crate::site::Site;
use crate::{Progress, ReorderError, Step};

/// Time from one check to the next.
pub(crate) const SETTLE: Duration = Duration::from_millis(250);
/// A command that has arrived may not be shown yet, so one check is not enough.
const QUIET_LOOKS: u32 = 2;
/// Wait where the server does not report what it works on.
const UNTOLD: Duration = Duration::from_secs(5);

/// Names of operations that write, and of the commands that request them.
const WRITE_KINDS: [&str; 3] = ["insert", "update", "remove"];
const WRITE_COMMANDS: [&str; 4] = ["insert", "update", "delete", "findAndModify"];
const INDEX_COMMAND: &str = "createIndexes";
/// Commands that create a collection where there is none, as inserts and some updates do.
const MAKING_COMMANDS: [&str; 2] = ["create", INDEX_COMMAND];

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sought {
    /// Operations that change documents or build indexes.
    Work,
    /// Operations that may create the copy again once it has been dropped.
    Makers,
}

/// Returns whether the server is working on such an operation. `None` if it does not report that.
pub(crate) async fn is_under_way(
    site: &Site,
    sought: Sought,
) -> Result<Option<bool>, ReorderError> {
    Ok(operations(site).await?.map(|operations| {
        let mut operations = operations.iter();
        operations.any(|operation| is_sought(operation, site.copy_namespace(), sought))
    }))
}

/// Returns when the server works no more on what an interrupted run had asked it to do with the copy: a late write
/// would put older documents in the place of those that are about to be copied, and a collection whose indexes are
/// being built is neither changed nor renamed. How long a server works on that is not ours to limit.
pub(crate) async fn until_idle(site: &Site, progress: &dyn Progress) -> Result<(), ReorderError> {
    let (mut quiet, mut told) = (0, false);
    loop {
        match is_under_way(site, Sought::Work).await? {
            Some(true) => {
                if !told {
                    progress.step(Step::AwaitingServer);
                }
                (quiet, told) = (0, true);
            }
            Some(false) => quiet += 1,
            None => {
                tokio::time::sleep(UNTOLD).await;
                return Ok(());
            }
        }
        if quiet == QUIET_LOOKS {
            return Ok(());
        }
        tokio::time::sleep(SETTLE).await;
    }
}

/// Returns operations of all users; of our own where that is not permitted: the dead client was one of them.
/// `None` if the server reports neither.
async fn operations(site: &Site) -> Result<Option<Vec<Document>>, ReorderError> {
    for command in [
        doc! { "currentOp": 1 },
        doc! { "currentOp": 1, "$ownOps": true },
    ] {
        match site.server.command("admin", command).await {
            Ok(reply) => {
                // Some servers answer with a cursor, as the aggregation stage does.
                let operations = match reply.get_array("inprog") {
                    Ok(found) => found
                        .iter()
                        .filter_map(Bson::as_document)
                        .cloned()
                        .collect(),
                    Err(_) => first_batch(&reply).cloned().collect(),
                };
                return Ok(Some(operations));
            }
            Err(gone @ ServerError::Unreachable { .. }) => return Err(gone.into()),
            Err(_) => {}
        }
    }
    Ok(None)
}

/// Returns whether the operation is one that is sought. For an `update` with many documents, mongod shows the
/// current one as a `command` of its own, `{q, u}`, so the namespace decides; a command that has just begun is
/// recognised only by its text.
fn is_sought(operation: &Document, copy: &Namespace, sought: Sought) -> bool {
    let kind = operation.get_str("op").unwrap_or_default();
    let is_on_copy = says(operation, "ns", &copy.to_string());
    let asked = |commands: &[&str]| {
        let command = operation.get_document("command").ok();
        command.is_some_and(|command| {
            let database = command.get_str("$db").ok();
            database.is_none_or(|database| database == copy.database())
                && commands
                    .iter()
                    .any(|name| says(command, name, copy.collection()))
        })
    };
    let writes = is_on_copy && WRITE_KINDS.contains(&kind) || asked(&WRITE_COMMANDS);
    // A command of more than 1,000 bytes, as that for a dozen indexes, is shown as text that is cut off.
    let text = operation.get_document("command").ok();
    let text = text.and_then(|command| command.get_str("$truncated").ok());
    let builds = text.is_some_and(|text| is_on_copy && text.contains(INDEX_COMMAND));
    match sought {
        Sought::Work => writes || builds || asked(&[INDEX_COMMAND]),
        Sought::Makers => writes || is_on_copy && kind == "command" || asked(&MAKING_COMMANDS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(operation: &Document, sought: Sought) -> bool {
        let copy = Namespace::new("d", "seekscope_reorder.c").unwrap();
        is_sought(operation, &copy, sought)
    }

    fn writes(operation: &Document) -> bool {
        let writes = found(operation, Sought::Work);
        assert!(!writes || found(operation, Sought::Makers), "{operation}");
        writes
    }

    #[test]
    fn writes_are_known_by_namespace_or_command() {
        let copy = "d.seekscope_reorder.c";
        let single = doc! { "q": { "_id": 7 }, "u": { "_id": 7 }, "upsert": true };
        let update = doc! { "op": "update", "ns": copy, "command": single.clone() };
        assert!(writes(&update), "one of a batch, as mongod shows it");
        let truncated = doc! { "$truncated": "{ insert: \"seekscope_reord" };
        assert!(writes(
            &doc! { "op": "insert", "ns": copy, "command": truncated }
        ));
        assert!(writes(&doc! { "op": "remove", "ns": copy }));
        let begun = doc! { "update": "seekscope_reorder.c", "updates": [], "$db": "d" };
        assert!(writes(
            &doc! { "op": "command", "ns": "d.$cmd", "command": begun }
        ));
        let elsewhere = doc! { "update": "seekscope_reorder.c", "updates": [], "$db": "e" };
        assert!(!writes(
            &doc! { "op": "update", "ns": "e.seekscope_reorder.c", "command": elsewhere }
        ));
        assert!(!writes(
            &doc! { "op": "update", "ns": "d.c", "command": single }
        ));
        assert!(!writes(&doc! {}));
    }

    #[test]
    fn an_index_build_is_work_and_may_make_the_copy() {
        let copy = "d.seekscope_reorder.c";
        let command = doc! { "createIndexes": "seekscope_reorder.c", "indexes": [], "$db": "d" };
        let building = doc! { "op": "command", "ns": copy, "command": command };
        assert!(found(&building, Sought::Work) && found(&building, Sought::Makers));
        let truncated =
            doc! { "$truncated": "{ createIndexes: \"seekscope_reorder.c\", indexes: [ { v: 2" };
        let building = doc! { "op": "command", "ns": copy, "command": truncated };
        assert!(found(&building, Sought::Work) && found(&building, Sought::Makers));
        let elsewhere = doc! { "createIndexes": "c", "indexes": [], "$db": "d" };
        let elsewhere = doc! { "op": "command", "ns": "d.c", "command": elsewhere };
        assert!(!found(&elsewhere, Sought::Work));
        let creating = doc! { "create": "seekscope_reorder.c", "$db": "d" };
        let creating = doc! { "op": "command", "ns": copy, "command": creating };
        assert!(!found(&creating, Sought::Work) && found(&creating, Sought::Makers));
        let reading = doc! { "op": "getmore", "ns": copy, "command": { "getMore": 5_i64, "collection": "x" } };
        assert!(!found(&reading, Sought::Makers));
    }
}
