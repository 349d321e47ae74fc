//! A sharded cluster: a configuration server, shards and mongos.

use anyhow::Result;
use bson::doc;
use futures_util::future::try_join_all;
use seekscope_server::{Server, ServerRole};

use super::replica_set::{host, initiate};
use super::{Deployment, Member, Site};

const CONFIG: &str = "config";
const ROUTER: &str = "mongos";

fn shard(number: usize) -> String {
    format!("shard-{number}")
}

impl Site<'_> {
    pub(super) async fn start_sharded(&self, shards: usize) -> Result<Deployment> {
        let config = self.start_shard_or_config(
            CONFIG.to_owned(),
            ServerRole::ConfigMember(CONFIG.into()),
            true,
        );
        let shards = (0..shards).map(|number| {
            let name = shard(number);
            self.start_shard_or_config(name.clone(), ServerRole::ShardMember(name), false)
        });
        let (config, shards) = tokio::try_join!(config, try_join_all(shards))?;
        let config_servers = format!("{CONFIG}/{}", host(&config.process));
        let router = ServerRole::Router(config_servers);
        let router = self.start(ROUTER, router, |_| {}).await?;
        let uri = format!("mongodb://{}/", host(&router.process));
        let server = Server::connect(&uri).await?;
        for shard in &shards {
            let address = format!("{}/{}", shard.name, host(&shard.process));
            server
                .command("admin", doc! { "addShard": address })
                .await?;
        }
        let mut members = vec![config];
        members.extend(shards);
        members.push(router);
        Ok(Deployment::new(uri, members))
    }

    /// A replica set of one member, of the same name.
    async fn start_shard_or_config(
        &self,
        name: String,
        role: ServerRole,
        is_config: bool,
    ) -> Result<Member> {
        let member = self.start(&name, role, |_| {}).await?;
        initiate(&name, &[&member.process], is_config).await?;
        Ok(member)
    }
}
