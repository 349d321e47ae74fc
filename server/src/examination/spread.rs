//! Asks a router how a cluster's data is spread over its shards, and what its balancer does meanwhile.

use std::future::Future;

use seekscope_run::{ClusterRecord, ShardOnDisk, SpreadCollection};

use super::asking::Asker;
use super::rights::{self, Resource};
use super::statistics::key_text;
use crate::cluster::{self, MovedOf};
use crate::server::{Server, ServerError};

/// The most collections whose spread is asked for, each of which every shard has to answer for.
const COLLECTIONS_MAX: usize = 20;
const MOVES: &str = "how many chunks were moved between shards meanwhile";

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
    /// How many chunks were ever moved, when the cluster was first asked.
    moves_before: Option<u64>,
}

impl Spread {
    /// Asks everything once. `names` are those of all shards.
    pub(super) async fn begin(asker: &mut Asker, names: Vec<String>) -> Self {
        let server = asker.server.clone();
        let on = cluster::balancer_on(&server);
        let balancer_on = note(asker, on, "whether the balancer is on", Needs::Config).await;
        let moves_before = moves(asker, &server).await;
        let set = cluster::chunk_bytes_set(&server);
        let chunk_bytes = note(asker, set, "the size of chunks", Needs::Config).await;
        let on_disk = cluster::disk_bytes_by_shard(&server);
        let on_disk = note(
            asker,
            on_disk,
            "what shards keep",
            Needs::Command("listDatabases"),
        )
        .await;
        let shards = names.iter().map(|shard| ShardOnDisk {
            shard: shard.clone(),
            disk_bytes: on_disk
                .as_ref()
                .map(|by_shard| by_shard.get(shard).copied().unwrap_or(0)),
        });
        let mut record = ClusterRecord {
            balancer_on: balancer_on.flatten(),
            chunk_bytes: chunk_bytes.flatten(),
            shards: shards.collect(),
            ..ClusterRecord::default()
        };
        let chunked = cluster::chunked(&server, COLLECTIONS_MAX);
        let chunked = note(
            asker,
            chunked,
            "which collections are sharded",
            Needs::Config,
        )
        .await;
        let (collections, count) = chunked.unwrap_or_default();
        record.collections_left_out = count.saturating_sub(collections.len()) as u64;
        for collection in collections {
            let Ok(namespace) = collection.namespace.parse() else {
                continue;
            };
            let parts = cluster::parts_by_shard(&server, &namespace);
            let what = "how many documents of sharded collections each shard has";
            let parts = note(asker, parts, what, Needs::Command("aggregate")).await;
            record.collections.push(SpreadCollection {
                namespace: collection.namespace,
                key: key_text(&collection.key),
                shards: cluster::shares(Some(&collection.chunks), parts.as_ref(), names.clone()),
            });
        }
        Self {
            record,
            moves_before,
        }
    }

    /// Asks again how many chunks were moved.
    pub(super) async fn finish(&mut self, asker: &mut Asker) {
        let Some(before) = self.moves_before else {
            return;
        };
        let server = asker.server.clone();
        let after = moves(asker, &server).await;
        // The log is of limited size: a count that fell says nothing.
        self.record.moved_chunks = after.and_then(|after| after.checked_sub(before));
    }

    pub(super) fn into_record(self) -> ClusterRecord {
        self.record
    }
}

async fn moves(asker: &mut Asker, server: &Server) -> Option<u64> {
    let moves = cluster::moves(server, MovedOf::Users);
    note(asker, moves, MOVES, Needs::Config).await.flatten()
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
