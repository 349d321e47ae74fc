//! Checks whether an index is complete.

use bson::{Document, doc};
use seekscope_server::{Server, number};

/// The server's statements about an index that was just built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Verified {
    /// Whether a count by the index, or if that is not possible the server's own validation, agrees with the number of
    /// documents. `None`: the server does neither.
    pub(super) whole: Option<bool>,
    /// Number of keys in the index, which can exceed that of documents.
    pub(super) keys: Option<u64>,
}

/// Counts by the index, and lets the server validate it if permitted. Every document must have the indexed
/// field.
pub(super) async fn verify(
    server: &Server,
    database: &str,
    collection: &str,
    index: &str,
    documents: u64,
) -> Verified {
    let counted = count(server, database, collection, index, documents).await;
    let validated = server
        .command(database, doc! { "validate": collection })
        .await
        .ok();
    judge(counted, validated.as_ref(), index, documents)
}

/// Counts by the index. To leave out the copies that moves of chunks have left, shards would fetch every document; so they
/// count them, and if there are any, the index must have as many as `_id` has.
async fn count(
    server: &Server,
    database: &str,
    collection: &str,
    index: &str,
    documents: u64,
) -> Option<u64> {
    let by = async |index: &str, level: Option<&str>| {
        let mut command = doc! { "count": collection, "query": {}, "hint": index };
        if let Some(level) = level {
            command.insert("readConcern", doc! { "level": level });
        }
        let reply = server.command(database, command).await.ok()?;
        number(reply.get("n")?)
    };
    let with_copies = Some("available");
    match by(index, with_copies).await {
        Some(counted) if counted == documents => Some(documents),
        Some(counted) if counted > documents && by("_id_", with_copies).await == Some(counted) => {
            Some(documents)
        }
        _ => by(index, None).await,
    }
}

/// Combines both: some servers count by `_id` whatever index is named, so a count that agrees proves little
/// by itself, and a validation that disagrees overrules it.
fn judge(
    counted: Option<u64>,
    validated: Option<&Document>,
    index: &str,
    documents: u64,
) -> Verified {
    let keys =
        validated.and_then(|reply| number(reply.get_document("keysPerIndex").ok()?.get(index)?));
    let valid = validated.and_then(|reply| reply.get_bool("valid").ok());
    let by_validation = valid.map(|valid| valid && keys.is_none_or(|keys| keys >= documents));
    let by_count = counted.map(|n| n == documents);
    let whole = match (by_count, by_validation) {
        (None, None) => None,
        (by_count, by_validation) => {
            Some(by_count.unwrap_or(true) && by_validation.unwrap_or(true))
        }
    };
    Verified { whole, keys }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_and_validation_must_agree_with_the_documents() {
        let valid = |keys: i32| doc! { "valid": true, "keysPerIndex": { "x": keys } };
        let judged = |counted, validated: Option<&Document>| judge(counted, validated, "x", 10);
        assert_eq!(
            judged(Some(10), Some(&valid(310))),
            Verified {
                whole: Some(true),
                keys: Some(310)
            }
        );
        assert_eq!(judged(Some(10), None).whole, Some(true));
        assert_eq!(judged(Some(9), Some(&valid(10))).whole, Some(false));
        assert_eq!(judged(Some(10), Some(&valid(9))).whole, Some(false));
        assert_eq!(judged(None, Some(&valid(10))).whole, Some(true));
        assert_eq!(
            judged(Some(10), Some(&doc! { "valid": false })).whole,
            Some(false)
        );
        assert_eq!(judged(None, None), Verified::default());
    }
}
