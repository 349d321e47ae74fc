//! Asks a router how a cluster's data is spread over its shards, and what its balancer does meanwhile.

use std::collections::BTreeMap;
use std::future::Future;

use seekscope_run::{ClusterRecord, Limitation, SentOperations, ShardOnDisk, SpreadCollection};

use super::asking::Asker;
use super::rights::{self, Resource};
use super::statistics::key_text;
use crate::cluster::{self, Chunked, MovedOf, Moves, Part};
use crate::server::{Server, ServerError};

/// The most collections whose spread is asked for, each of which every shard has to answer for.
const COLLECTIONS_MAX: usize = 20;
/// The most zones of a collection that are named.
const ZONES_MAX: usize = 20;
const MOVES: &str = "how many chunks were moved between shards in the meantime";
const SENT: &str = "to how many shards the router sends operations";

/// What an answer needs the right to.
#[derive(Debug, Clone, Copy)]
enum Needs {
    /// Reading the cluster's configuration.
    Config,
    /// This command, of the examination of every server.
    Command(&'static str),
}

/// The spread of a cluster's data, while the cluster is watched.
#[derive(Debug, Default)]
pub(super) struct Spread {
    record: ClusterRecord,
    /// The chunks that had ever been moved when the cluster was first asked.
    moves_before: Option<Moves>,
    /// The operations that the router had sent to shards when the first questions had been answered.
    sent_before: Option<Vec<SentOperations>>,
    /// What each shard had of the collections then, by `database.collection` and shard.
    parts_before: BTreeMap<String, BTreeMap<String, Part>>,
}

impl Spread {
    /// Asks everything once. `names` are those of all shards.
    pub(super) async fn begin(asker: &mut Asker, names: Vec<String>) -> Self {
        let server = asker.server.clone();
        let on = cluster::balancer_on(&server);
        let balancer_on = note(asker, on, "whether the balancer is on", Needs::Config).await;
        let window = cluster::balancer_window(&server);
        let window = note(asker, window, "when the balancer may run", Needs::Config).await;
        let moves_before = moves(asker, &server).await;
        let set = cluster::chunk_bytes_set(&server);
        let chunk_bytes = note(asker, set, "the size of chunks", Needs::Config).await;
        let mut spread = Self {
            record: ClusterRecord {
                balancer_on: balancer_on.flatten(),
                balancer_window: window.flatten(),
                chunk_bytes: chunk_bytes.flatten(),
                ..ClusterRecord::default()
            },
            moves_before,
            sent_before: None,
            parts_before: BTreeMap::new(),
        };
        let chunked = cluster::chunked(&server, names.len());
        let chunked = note(
            asker,
            chunked,
            "which collections are sharded",
            Needs::Config,
        )
        .await;
        spread.add_shards(asker, &names, chunked.as_deref()).await;
        if let Some(chunked) = chunked {
            spread.add_collections(asker, &names, chunked).await;
        }
        // Last, because the questions about collections are sent to shards, too.
        spread.sent_before = sent(asker, &server).await;
        spread
    }

    /// Adds what each shard keeps.
    async fn add_shards(
        &mut self,
        asker: &mut Asker,
        names: &[String],
        chunked: Option<&[Chunked]>,
    ) {
        let server = asker.server.clone();
        let on_disk = cluster::disk_bytes_by_shard(&server);
        let needs = Needs::Command("listDatabases");
        let on_disk = note(asker, on_disk, "how much data each shard holds", needs).await;
        let draining = cluster::draining(&server);
        let what = "whether a shard is being removed";
        let draining = note(asker, draining, what, Needs::Config).await;
        let mut draining = draining.unwrap_or_default();
        let shard = |name: &String| {
            let databases = draining.remove(name);
            ShardOnDisk {
                shard: name.clone(),
                disk_bytes: on_disk
                    .as_ref()
                    .map(|by_shard| by_shard.get(name).copied().unwrap_or(0)),
                chunks: chunked.map(|all| chunks_of(all, name)),
                draining: databases.is_some(),
                databases: databases.unwrap_or_default(),
            }
        };
        self.record.shards = names.iter().map(shard).collect();
    }

    /// Adds the sharded collections, as many as are asked for.
    async fn add_collections(
        &mut self,
        asker: &mut Asker,
        names: &[String],
        chunked: Vec<Chunked>,
    ) {
        let server = asker.server.clone();
        self.record.sharded_collections = Some(chunked.len() as u64);
        if chunked.len() > COLLECTIONS_MAX {
            asker.missing.push(left_out(chunked.len()));
        }
        let zones = cluster::zones(&server);
        let zones = note(asker, zones, "the zones of shards", Needs::Config).await;
        let mut zones = zones.unwrap_or_default();
        for collection in chunked.into_iter().take(COLLECTIONS_MAX) {
            let Ok(namespace) = collection.namespace.parse() else {
                continue;
            };
            let parts = cluster::parts_by_shard(&server, &namespace);
            let what = "how many documents of sharded collections each shard has";
            let parts = note(asker, parts, what, Needs::Command("aggregate")).await;
            if let Some(parts) = &parts {
                let name = collection.namespace.clone();
                self.parts_before.insert(name, parts.clone());
            }
            let zones = zones.remove(&collection.namespace).unwrap_or_default();
            let moves = self.moves_before.iter();
            let moved_from = moves.flat_map(|moves| moves.from_lately(&collection.namespace));
            self.record.collections.push(SpreadCollection {
                key: key_text(&collection.key),
                shards: cluster::shares(
                    Some(&collection.chunks),
                    parts.as_ref(),
                    names.iter().cloned(),
                ),
                balancing_off: collection.balancing_off,
                zones: zones.into_iter().take(ZONES_MAX).collect(),
                jumbo_chunks: Some(collection.jumbo_chunks),
                moved_chunks: None,
                failed_moves: Vec::new(),
                moved_from: moved_from.cloned().collect(),
                namespace: collection.namespace,
            });
        }
    }

    /// Asks again for what the watch may have changed.
    pub(super) async fn finish(&mut self, asker: &mut Asker) {
        let server = asker.server.clone();
        if let Some(before) = self.sent_before.take()
            && let Some(after) = sent(asker, &server).await
        {
            self.record.sent = sent_since(&before, after);
        }
        self.ask_again_for_moves(asker, &server).await;
        self.ask_again_for_shares(asker, &server).await;
    }

    async fn ask_again_for_moves(&mut self, asker: &mut Asker, server: &Server) {
        let Some(before) = &self.moves_before else {
            return;
        };
        let Some(after) = moves(asker, server).await else {
            return;
        };
        // The log is of limited size: a count that fell says nothing.
        self.record.moved_chunks = after.chunks().checked_sub(before.chunks());
        for collection in &mut self.record.collections {
            let name = &collection.namespace;
            collection.moved_chunks = after.chunks_of(name).checked_sub(before.chunks_of(name));
            collection.failed_moves = after.failed_lately(name);
            collection.moved_from = after.from_lately(name).cloned().collect();
        }
    }

    /// Asks each shard again what it has of the collections. What nobody answers now stays as it was, and is not missing.
    async fn ask_again_for_shares(&mut self, asker: &mut Asker, server: &Server) {
        let names: Vec<String> = self.record.shards.iter().map(|s| s.shard.clone()).collect();
        let chunked = cluster::chunked(server, names.len());
        let Ok(chunked) = asker.wait_for(chunked, "find").await else {
            return;
        };
        for shard in &mut self.record.shards {
            shard.chunks = Some(chunks_of(&chunked, &shard.shard));
        }
        for collection in &mut self.record.collections {
            let now = chunked
                .iter()
                .find(|now| now.namespace == collection.namespace);
            let (Some(now), Ok(namespace)) = (now, collection.namespace.parse()) else {
                continue;
            };
            let parts = cluster::parts_by_shard(server, &namespace);
            let Ok(parts) = asker.wait_for(parts, "aggregate").await else {
                return;
            };
            collection.shards =
                cluster::shares(Some(&now.chunks), Some(&parts), names.iter().cloned());
            if let Some(before) = self.parts_before.get(&collection.namespace) {
                for share in &mut collection.shards {
                    let of = |parts: &BTreeMap<String, Part>| {
                        parts.get(&share.shard).copied().unwrap_or_default()
                    };
                    let (before, after) = (of(before), of(&parts));
                    share.reads = after.reads.checked_sub(before.reads);
                    share.writes = after.writes.checked_sub(before.writes);
                }
            }
            collection.jumbo_chunks = Some(now.jumbo_chunks);
        }
    }

    pub(super) fn into_record(self) -> ClusterRecord {
        self.record
    }
}

async fn moves(asker: &mut Asker, server: &Server) -> Option<Moves> {
    let moves = cluster::moves(server, MovedOf::Users);
    note(asker, moves, MOVES, Needs::Config).await
}

async fn sent(asker: &mut Asker, server: &Server) -> Option<Vec<SentOperations>> {
    let needs = Needs::Command("serverStatus");
    note(asker, cluster::sent(server), SENT, needs).await
}

/// Returns what a router has sent between two answers; nothing of kinds that it counts anew because it was restarted.
fn sent_since(before: &[SentOperations], after: Vec<SentOperations>) -> Vec<SentOperations> {
    let since = |after: SentOperations| {
        let before = before.iter().find(|before| before.kind == after.kind)?;
        Some(SentOperations {
            all_shards: after.all_shards.checked_sub(before.all_shards)?,
            several_shards: after.several_shards.checked_sub(before.several_shards)?,
            one_shard: after.one_shard.checked_sub(before.one_shard)?,
            not_sharded: after.not_sharded.checked_sub(before.not_sharded)?,
            kind: after.kind,
        })
    };
    after.into_iter().filter_map(since).collect()
}

/// Returns how many chunks of all these collections a shard has.
fn chunks_of(collections: &[Chunked], shard: &str) -> u64 {
    let chunks = collections.iter().filter_map(|one| one.chunks.get(shard));
    chunks.copied().fold(0, u64::saturating_add)
}

fn left_out(sharded: usize) -> Limitation {
    Limitation {
        what: format!(
            "of {sharded} sharded collections, only the {COLLECTIONS_MAX} whose chunks are spread \
             least evenly were examined"
        ),
        why: "every shard has to answer a command for each collection".into(),
        remedy: "for the others, run db.COLLECTION.getShardDistribution() in mongosh".into(),
    }
}

/// Waits for an answer; if there is none, records that `what` is missing.
async fn note<T>(
    asker: &mut Asker,
    answer: impl Future<Output = Result<T, ServerError>>,
    what: &str,
    needs: Needs,
) -> Option<T> {
    let (command, remedy) = match needs {
        Needs::Config => ("find", rights::remedy_on(Resource::ClusterConfig, "find")),
        Needs::Command(command) => (command, rights::remedy(command)),
    };
    match asker.wait_for(answer, command).await {
        Ok(told) => Some(told),
        Err(error) => {
            asker.note(what, &error, remedy);
            None
        }
    }
}
