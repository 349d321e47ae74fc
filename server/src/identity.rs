//! Tells whether two names lead to the same server.

use mongodb::bson::{Document, doc};

use crate::replies::first_batch;
use crate::server::Server;

impl Server {
    /// Returns what distinguishes the server from all others, whatever name it was reached by: the cluster of a
    /// mongos, the process of any other server. `None` for a server that does not say, such as those before
    /// 4.4.
    pub async fn identity(&self) -> Option<String> {
        let hello = self.hello().await.ok()?;
        if hello.is_router() {
            let version = doc! { "find": "version", "limit": 1 };
            let reply = self.command_in_time("config", version).await;
            let cluster = reply.ok().as_ref().and_then(cluster);
            // If the cluster may not be read, the same mongos under two names is at least recognised.
            if cluster.is_some() {
                return cluster;
            }
        }
        hello.process_id.map(|id| format!("process {id}"))
    }
}

/// Reads the cluster from the answer to `find` in `config.version`.
fn cluster(reply: &Document) -> Option<String> {
    let id = first_batch(reply).next()?.get_object_id("clusterId");
    id.ok().map(|id| format!("cluster {id}"))
}

#[cfg(test)]
mod tests {
    use mongodb::bson::oid::ObjectId;

    use super::*;

    #[test]
    fn answers_are_not_trusted() {
        let id = ObjectId::new();
        let version = doc! { "_id": 1, "clusterId": id };
        let reply = |batch: Vec<Document>| doc! { "cursor": { "firstBatch": batch } };
        assert_eq!(
            cluster(&reply(vec![version])),
            Some(format!("cluster {id}"))
        );
        assert_eq!(cluster(&reply(Vec::new())), None);
    }
}
