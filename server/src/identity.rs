//! Is it the same server under two names?

use mongodb::bson::{Document, doc};

use crate::replies::first_batch;
use crate::server::Server;

impl Server {
    /// What tells it from all others, under whatever name it was reached: the cluster of a mongos, the process of
    /// any other server. `None` of a server that does not say, as those before 4.4.
    pub async fn identity(&self) -> Option<String> {
        let hello = self.hello().await.ok()?;
        if hello.is_router() {
            let version = doc! { "find": "version", "limit": 1 };
            let reply = self.command_in_time("config", version).await;
            let cluster = reply.ok().as_ref().and_then(cluster);
            // Where it may not be read, the same mongos under two names is told at least.
            if cluster.is_some() {
                return cluster;
            }
        }
        hello.process_id.map(|id| format!("process {id}"))
    }
}

/// The answer to `find` in `config.version`.
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
