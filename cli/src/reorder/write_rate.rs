//! Measures how much is written while the command watches, from two samples of the server's counters.

use std::time::{Duration, Instant};

use mongodb::bson::{Document, doc};
use seekscope_run::WriteRate;
use seekscope_server::{Namespace, Server, number};

/// Counts since the server's start, from one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Writes {
    inserts: u64,
    updates: u64,
    removes: u64,
}

/// Watches for `time`. `None` if the server has no counters or does not let us read them, or if `time` is 0.
pub async fn watch(server: &Server, namespace: &Namespace, time: Duration) -> Option<WriteRate> {
    if time.is_zero() {
        return None;
    }
    let (of_collection, first) = match of_collection(server, namespace).await {
        Some(writes) => (true, writes),
        None => (false, of_server(server).await?),
    };
    let started = Instant::now();
    tokio::time::sleep(time).await;
    let second = match of_collection {
        true => self::of_collection(server, namespace).await?,
        false => of_server(server).await?,
    };
    // The counters of a restarted server begin at 0.
    Some(WriteRate {
        watched_s: started.elapsed().as_secs_f64(),
        source: if of_collection { "top" } else { "serverStatus" }.into(),
        of_collection,
        inserts: second.inserts.saturating_sub(first.inserts),
        updates: second.updates.saturating_sub(first.updates),
        removes: second.removes.saturating_sub(first.removes),
    })
}

/// Reads `top`, which counts per collection.
async fn of_collection(server: &Server, namespace: &Namespace) -> Option<Writes> {
    let reply = server.command("admin", doc! { "top": 1 }).await.ok()?;
    let totals = reply.get_document("totals").ok()?;
    let own = totals.get_document(namespace.to_string()).ok()?;
    let count = |kind: &str| number(own.get_document(kind).ok()?.get("count")?);
    Some(Writes {
        inserts: count("insert")?,
        updates: count("update")?,
        removes: count("remove")?,
    })
}

/// Reads `serverStatus`, which counts all collections together.
async fn of_server(server: &Server) -> Option<Writes> {
    let status = server
        .command("admin", doc! { "serverStatus": 1 })
        .await
        .ok()?;
    let counters: &Document = status.get_document("opcounters").ok()?;
    let count = |kind: &str| number(counters.get(kind)?);
    Some(Writes {
        inserts: count("insert")?,
        updates: count("update")?,
        removes: count("delete")?,
    })
}
