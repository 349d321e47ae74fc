//! Shards a collection that does not exist yet, and spreads its chunks while it is empty.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::{Bson, Document, doc};
use seekscope_run::{Limitation, ShardKind};
use seekscope_server::{Namespace, Server, ServerError, cluster};
use tokio::time::{Instant, sleep, timeout};

use super::ShardPlan;
use crate::WorkloadError;

/// How long a split or a move is tried again: the balancer may be moving a chunk itself.
const RETRIES_FOR: Duration = Duration::from_secs(30);
/// Time limit for a command: chunks are made and moved while the collection is empty.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Shards the collection and spreads its chunks over these shards. Returns what was not possible.
///
/// # Errors
/// Fails if the login lacks a right, or the cluster refuses. What exists of the collection by then is empty.
pub async fn create(
    server: &Server,
    namespace: &Namespace,
    plan: &ShardPlan,
    shards: &[String],
) -> Result<Vec<Limitation>, WorkloadError> {
    let database = namespace.database();
    let enabled = administer(server, doc! { "enableSharding": database });
    // Since MongoDB 6.0 this is not needed, and it may have been done by others: whatever is missing stops the next
    // command too.
    let enabled = enabled.await;
    let mut missing = Vec::new();
    match shard_collection(server, namespace, plan, &mut missing).await {
        Ok(()) => {}
        Err(error @ ServerError::NotAuthorised { .. }) => return Err(error.into()),
        Err(error) => return Err(enabled.err().unwrap_or(error).into()),
    }
    if plan.kind == ShardKind::Ranged {
        let spread = Spread {
            server,
            namespace,
            plan,
        };
        missing.extend(spread.over(shards).await?);
    }
    Ok(missing)
}

async fn shard_collection(
    server: &Server,
    namespace: &Namespace,
    plan: &ShardPlan,
    missing: &mut Vec<Limitation>,
) -> Result<(), ServerError> {
    let command = doc! { "shardCollection": namespace.to_string(), "key": plan.pattern() };
    let chunks = plan.pre_split.filter(|_| plan.kind == ShardKind::Hashed);
    let Some(chunks) = chunks else {
        return administer(server, command).await.map(drop);
    };
    let mut with_chunks = command.clone();
    with_chunks.insert("numInitialChunks", i64::from(chunks));
    match administer(server, with_chunks).await {
        // The newest servers decide themselves.
        Err(ServerError::Failed { why, .. }) if why.contains("numInitialChunks") => {
            administer(server, command).await?;
            missing.push(Limitation {
                what: format!("{namespace} was not split into {chunks} chunks"),
                why,
                remedy: "this server decides the number of chunks itself: leave --pre-split out"
                    .into(),
            });
            Ok(())
        }
        answer => answer.map(drop),
    }
}

/// Runs a command that the router passes on to shards. A shard that hangs would hold it up for ever.
async fn administer(server: &Server, command: Document) -> Result<Document, ServerError> {
    let answer = timeout(COMMAND_LIMIT, server.command("admin", command)).await;
    answer.unwrap_or_else(|_| {
        Err(ServerError::Unreachable {
            uri: server.shown_uri(),
            why: format!(
                "the server did not answer within {} s",
                COMMAND_LIMIT.as_secs()
            ),
            remedy: "check that all of its shards answer",
        })
    })
}

/// Spreads the ranges of one collection.
struct Spread<'a> {
    server: &'a Server,
    namespace: &'a Namespace,
    plan: &'a ShardPlan,
}

impl Spread<'_> {
    /// Gives each shard as many neighbouring ranges as the others. Whole shards' ranges are moved before they are
    /// split further, so there is one move for each shard but the first, and then no shard gets ahead of the others
    /// for the balancer to interfere.
    async fn over(&self, shards: &[String]) -> Result<Option<Limitation>, WorkloadError> {
        let chunks = cluster::chunks_by_shard(self.server, self.namespace).await?;
        // There is one chunk so far.
        let home = chunks.into_keys().next();
        let order = home_first(shards, home.as_deref());
        let owners = owners(self.plan.split_points.len() + 1, order.len());
        for (shard, place) in order.iter().zip(first_places(&owners)).skip(1) {
            let point = &self.plan.split_points[place - 1];
            self.split_at(point).await?;
            let find = self.key_of(point);
            let command = doc! {
                "moveChunk": self.namespace.to_string(), "find": find, "to": *shard,
                "_waitForDelete": true,
            };
            self.insist(command).await?;
        }
        for place in finer_places(&owners) {
            self.split_at(&self.plan.split_points[place - 1]).await?;
        }
        let chunks = cluster::chunks_by_shard(self.server, self.namespace).await?;
        Ok(self.uneven(&chunks, order.len()))
    }

    fn key_of(&self, value: &Bson) -> Document {
        doc! { self.plan.key.as_str(): value.clone() }
    }

    async fn split_at(&self, point: &Bson) -> Result<(), ServerError> {
        let middle = self.key_of(point);
        let command = doc! { "split": self.namespace.to_string(), "middle": middle };
        self.insist(command).await
    }

    /// Runs a command that a move of the balancer's may get in the way of.
    async fn insist(&self, command: Document) -> Result<(), ServerError> {
        let until = Instant::now() + RETRIES_FOR;
        loop {
            match administer(self.server, command.clone()).await {
                Err(ServerError::Failed { .. }) if Instant::now() < until => {
                    sleep(RETRY_PAUSE).await;
                }
                answer => return answer.map(drop),
            }
        }
    }

    /// Returns a limitation if a shard has more than one chunk more than another.
    fn uneven(&self, chunks: &BTreeMap<String, u64>, shards: usize) -> Option<Limitation> {
        let most = chunks.values().max().copied().unwrap_or(0);
        let least = match chunks.len() < shards {
            true => 0,
            false => chunks.values().min().copied().unwrap_or(0),
        };
        (most - least > 1).then(|| Limitation {
            what: format!(
                "the chunks of {} are not spread evenly: between {least} and {most} on each shard",
                self.namespace
            ),
            why: "chunks were being moved in the meantime".into(),
            remedy: "load again; sh.stopBalancer() prevents the balancer from moving chunks".into(),
        })
    }
}

/// Returns the shards with the one that has all chunks at first.
fn home_first<'a>(shards: &'a [String], home: Option<&str>) -> Vec<&'a str> {
    let is_home = |shard: &&str| Some(*shard) == home;
    let all = || shards.iter().map(String::as_str);
    let others = all().filter(|shard| !is_home(shard));
    all().filter(is_home).chain(others).collect()
}

/// Returns for each of `chunks` ranges the place of its shard: neighbouring ranges, equal numbers.
fn owners(chunks: usize, shards: usize) -> Vec<usize> {
    (0..chunks).map(|chunk| chunk * shards / chunks).collect()
}

/// Returns the first range of each shard.
fn first_places(owners: &[usize]) -> Vec<usize> {
    let is_first = |place: &usize| *place == 0 || owners[*place] != owners[place - 1];
    (0..owners.len()).filter(is_first).collect()
}

/// Returns the other ranges, in an order in which shards take turns.
fn finer_places(owners: &[usize]) -> Vec<usize> {
    let firsts = first_places(owners);
    let rank = |place: usize| {
        let begins = firsts.iter().rev().find(|first| **first <= place);
        place - begins.copied().unwrap_or(0)
    };
    let mut places: Vec<usize> = (0..owners.len()).filter(|p| !firsts.contains(p)).collect();
    places.sort_by_key(|place| (rank(*place), *place));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_get_neighbouring_ranges_in_equal_numbers() {
        assert_eq!(owners(4, 2), [0, 0, 1, 1]);
        assert_eq!(owners(5, 2), [0, 0, 0, 1, 1]);
        assert_eq!(owners(3, 3), [0, 1, 2]);
        assert_eq!(first_places(&owners(5, 2)), [0, 3]);
        // The shards take turns, so that none gets ahead.
        assert_eq!(finer_places(&owners(6, 2)), [1, 4, 2, 5]);
        assert!(finer_places(&owners(3, 3)).is_empty());
        assert_eq!(first_places(&owners(4, 1)), [0]);
        assert_eq!(finer_places(&owners(4, 1)), [1, 2, 3]);
    }

    #[test]
    fn what_lies_somewhere_already_stays_there() {
        let shards = ["a", "b", "c"].map(String::from);
        assert_eq!(home_first(&shards, Some("b")), ["b", "a", "c"]);
        assert_eq!(home_first(&shards, None), ["a", "b", "c"]);
    }
}
