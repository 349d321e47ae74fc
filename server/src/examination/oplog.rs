//! Finds how far back the oplog reaches.

use mongodb::bson::{Document, doc};
use seekscope_run::OplogFacts;

use super::asking::{Asker, NoAnswer};
use super::statistics;
use crate::replies::{first_batch, number};

const DATABASE: &str = "local";
const COLLECTION: &str = "oplog.rs";

/// Returns the facts about the oplog of a member of a replica set; `None` if its size or its entries cannot be
/// read, or if it has no size limit.
pub(super) async fn facts(asker: &mut Asker) -> Option<OplogFacts> {
    let stats = match statistics::ask(asker, DATABASE, COLLECTION).await {
        Ok(stats) => stats,
        Err(error) => {
            let remedy = super::rights::remedy("collStats");
            asker.note("the oplog's size", &error, remedy);
            return None;
        }
    };
    let window_s = match window_s(asker).await {
        Ok(window_s) => window_s?,
        Err(error) => {
            let remedy = super::rights::remedy("find");
            asker.note("the oplog's window", &error, remedy);
            return None;
        }
    };
    sizes(stats.first()?, window_s)
}

fn sizes(stats: &Document, window_s: f64) -> Option<OplogFacts> {
    let bytes = |name: &str| stats.get(name).and_then(number);
    Some(OplogFacts {
        size_bytes: bytes("maxSize").filter(|bytes| *bytes > 0)?,
        used_bytes: bytes("size").unwrap_or(0),
        window_s,
    })
}

/// Returns the time between the first and the last entry, s; `None` for an empty oplog. Only their timestamps
/// are read.
async fn window_s(asker: &mut Asker) -> Result<Option<f64>, NoAnswer> {
    let mut seconds = Vec::new();
    for order in [1, -1] {
        let find = doc! {
            "find": COLLECTION, "sort": { "$natural": order }, "limit": 1,
            "singleBatch": true, "projection": { "ts": 1, "_id": 0 },
        };
        let reply = asker.ask(DATABASE, find).await?;
        let entry = first_batch(&reply).next();
        let stamp = entry.and_then(|entry| entry.get_timestamp("ts").ok());
        seconds.extend(stamp.map(|stamp| stamp.time));
    }
    Ok(match seconds[..] {
        [first, last] => Some(f64::from(last.saturating_sub(first))),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_capped_collection() {
        let stats = doc! { "capped": true, "maxSize": 1_038_090_240_i64, "size": 9_000.0 };
        let expected = OplogFacts {
            size_bytes: 1_038_090_240,
            used_bytes: 9_000,
            window_s: 7.0,
        };
        assert_eq!(sizes(&stats, 7.0), Some(expected));
        assert_eq!(sizes(&doc! { "size": 9_000.0 }, 7.0), None);
    }
}
