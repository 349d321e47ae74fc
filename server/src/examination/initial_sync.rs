//! Which collection a member of a replica set copies in its initial sync, as the server that it copies from
//! sees it.

use mongodb::bson::{Document, doc};

use crate::namespace::Namespace;
use crate::replies::first_batch;
use crate::server::{Server, ServerError};

/// The most members that copy from one server at the same time and are told from one another.
const CURSORS_MAX: usize = 100;

/// A cursor with which a member reads a whole collection, in the order in which the collection is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyCursor {
    pub id: i64,
    pub collection: Namespace,
}

/// Returns the cursors with which members copy collections from this server. From MongoDB 4.4 on a member asks
/// for tokens with which it could go on after a lost connection, which no other client does.
///
/// # Errors
/// The server refuses the question (it wants the action `inprog` on the cluster), or does not answer within some
/// seconds.
pub async fn copy_cursors(server: &Server) -> Result<Vec<CopyCursor>, ServerError> {
    // Between two batches a cursor is idle.
    let looked = doc! { "$currentOp": { "allUsers": true, "idleCursors": true } };
    let of_copies = doc! { "$match": { "cursor.originatingCommand.$_requestResumeToken": true } };
    let no_more = doc! { "$project": { "ns": 1, "cursor.cursorId": 1 } };
    let command = doc! {
        "aggregate": 1,
        "pipeline": [looked, of_copies, { "$limit": CURSORS_MAX as i64 }, no_more],
        "cursor": {},
    };
    let reply = server.command_in_time("admin", command).await?;
    Ok(first_batch(&reply).filter_map(read).collect())
}

/// Returns `None` for what is no cursor of a collection.
fn read(operation: &Document) -> Option<CopyCursor> {
    let cursor = operation.get_document("cursor").ok()?;
    Some(CopyCursor {
        id: cursor.get_i64("cursorId").ok()?,
        collection: operation.get_str("ns").ok()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_collection_is_no_copy() {
        let copied = doc! { "ns": "shop.orders", "cursor": { "cursorId": 7_i64 } };
        let cursor = read(&copied).unwrap();
        assert_eq!(
            (cursor.id, cursor.collection.to_string().as_str()),
            (7, "shop.orders")
        );
        for other in [
            doc! { "ns": "shop", "cursor": { "cursorId": 7_i64 } },
            doc! { "ns": "shop.orders", "cursor": { "cursorId": "7" } },
            doc! { "ns": "shop.orders" },
            doc! { "cursor": { "cursorId": 7_i64 } },
        ] {
            assert_eq!(read(&other), None, "{other}");
        }
    }
}
