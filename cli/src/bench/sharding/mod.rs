//! `--shard`: has the collections of a benchmark sharded before they are loaded, and checks afterwards how their
//! documents are spread.

mod router_cost;
mod spread;
mod watch;

use anyhow::Result;
use seekscope_run::{BenchSharding, Limitation, ShardKind, ShardedCollection};
use seekscope_server::cluster::{self, Sharded};
use seekscope_server::{Namespace, Server, ServerError};
use seekscope_workload::ownership::{DataSet, OwnedDatabase};
use seekscope_workload::sharding::{KeyField, LoadedCollection, ShardPlan, ShardWish, create};
use tokio::time::timeout;

use self::spread::{lost, spread};
pub use self::watch::{ShardCounters, ShardWatch};
use super::data;
use super::stage::Stage;
use super::target::Target;
use crate::args::{BenchTargetArgs, ShardArgs, ShardName};
use crate::exit::{Inconsistent, NotPermitted, Usage, message_of};

/// What reading the cluster's configuration takes.
const MAY_READ_CONFIG: &str = "grant the login the built-in role clusterMonitor";

/// What `--shard` and its options ask for.
#[derive(Debug, Clone)]
pub struct Sharding {
    wish: ShardWish,
}

/// A collection whose documents are to be looked for on the shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    pub collection: String,
    /// Number of documents; `None` if it is not known.
    pub documents: Option<u64>,
}

impl Sharding {
    /// Returns what was asked for; `None` if nothing was. A private server is refused before it is started.
    pub fn new(args: &ShardArgs, uri: Option<&str>) -> Result<Option<Self>> {
        let Some(name) = args.shard else {
            return Ok(None);
        };
        if uri.is_none() {
            let why =
                "without a connection string a private mongod is started, which is no cluster";
            return Err(no_router(why).into());
        }
        let kind = match name {
            ShardName::Hashed => ShardKind::Hashed,
            ShardName::Ranged => ShardKind::Ranged,
        };
        Ok(Some(Self {
            wish: ShardWish {
                kind,
                key: args.shard_key.clone(),
                pre_split: args.pre_split,
            },
        }))
    }

    /// Returns the field of the shard key.
    pub fn key(&self) -> &KeyField {
        &self.wish.key
    }

    /// Returns the record of what was asked for.
    pub fn record(&self) -> BenchSharding {
        BenchSharding {
            kind: self.wish.kind,
            key: self.wish.key.to_string(),
            pre_split: self.wish.pre_split,
            collections: Vec::new(),
            router: Vec::new(),
        }
    }

    /// Refuses servers of which none is a router, and says what they are. A server beside a router is loaded as it is,
    /// to be compared with the cluster.
    pub async fn ensure_router(&self, targets: &[Target]) -> Result<()> {
        if targets.iter().any(|target| target.routed().is_some()) {
            return Ok(());
        }
        let mut what = Vec::new();
        for target in targets {
            what.push(format!(
                "{} is {}",
                target.facts.uri,
                target.described().await
            ));
        }
        Err(no_router(&what.join(", and ")).into())
    }

    /// Plans what is to be created, and refuses what exists otherwise. Changes nothing.
    async fn plans(
        &self,
        target: &Target,
        database: &str,
        clients: u32,
        collections: &[LoadedCollection<'_>],
    ) -> Result<Vec<ShardPlan>> {
        let server = target.server()?;
        let owned = OwnedDatabase::open(server, database).await?;
        let shards = target.shard_names();
        if shards.is_empty() && self.wish.kind == ShardKind::Ranged {
            return Err(NotPermitted(format!(
                "--shard ranged: the login may not list the shards of {}, over which the ranges are to be spread; \
                 grant it the built-in role clusterManager",
                target.facts.uri
            ))
            .into());
        }
        let mut plans = Vec::new();
        for collection in collections {
            let plan = self.wish.plan(collection, shards.len());
            let plan = plan.map_err(|error| self.wrong_key(&error.to_string()))?;
            let namespace = Namespace::new(database, &collection.name)?;
            if clients > 1 || owned.stays(&collection.name).await? {
                self.ensure_sharded(server, &namespace, clients).await?;
            } else {
                plans.push(plan);
            }
        }
        Ok(plans)
    }

    fn wrong_key(&self, why: &str) -> Usage {
        Usage(format!(
            "--shard {} --shard-key {}: {why}",
            <&str>::from(self.wish.kind),
            self.wish.key
        ))
    }

    /// Refuses a collection that is not sharded as asked for.
    async fn ensure_sharded(
        &self,
        server: &Server,
        namespace: &Namespace,
        clients: u32,
    ) -> Result<()> {
        let Some(is) = self.otherwise(server, namespace).await? else {
            return Ok(());
        };
        let pattern = self.wish.pattern();
        let remedy = match clients {
            1 => format!(
                "drop the collection, so that it is created sharded by {pattern}, shard it so yourself, or leave \
                 --shard out to take it as it is"
            ),
            _ => format!(
                "several clients cannot shard a collection together: shard it beforehand, empty, by {pattern}"
            ),
        };
        Err(Usage(format!("{namespace} {is}: {remedy}")).into())
    }

    /// Returns in words how a collection is sharded; `None` if it is as asked for.
    async fn otherwise(&self, server: &Server, namespace: &Namespace) -> Result<Option<String>> {
        Ok(match sharded(server, namespace).await? {
            Some(found) if cluster::is_same_key(&found.key, &self.wish.pattern()) => None,
            Some(found) => Some(format!("is sharded by {}", found.key)),
            None => Some("is not sharded".into()),
        })
    }

    async fn create(
        &self,
        target: &Target,
        database: &str,
        data_set: &str,
        plans: &[ShardPlan],
    ) -> Result<Vec<Limitation>> {
        if plans.is_empty() {
            return Ok(Vec::new());
        }
        let (server, shards) = (target.server()?, &target.shard_names());
        let mut owned = OwnedDatabase::open(server, database).await?;
        let names: Vec<String> = plans.iter().map(|plan| plan.collection.clone()).collect();
        owned.set_sharded(data_set, &names).await?;
        let mut missing = Vec::new();
        for plan in plans {
            let namespace = Namespace::new(database, &plan.collection)?;
            match create(server, &namespace, plan, shards).await {
                Ok(told) => missing.extend(told),
                Err(error) => {
                    // What exists by now is empty, and nothing is left to load it.
                    let dropping = owned.drop_data_set(data_set);
                    let dropped = timeout(data::DROP_LIMIT, dropping).await;
                    let error = anyhow::Error::from(error);
                    return Err(match dropped {
                        Ok(Ok(())) => error,
                        _ => error.context(format!(
                            "{namespace} was not sharded, and what was made of it stays in {database}; the next load, or a \
                             run with --drop, drops it"
                        )),
                    });
                }
            }
        }
        Ok(missing)
    }

    /// Refuses loaded collections that are not sharded as asked for.
    async fn ensure_loaded(
        &self,
        target: &Target,
        database: &str,
        collections: &[String],
    ) -> Result<()> {
        for collection in collections {
            let namespace = Namespace::new(database, collection)?;
            if self
                .otherwise(target.server()?, &namespace)
                .await?
                .is_some()
            {
                return Err(Usage(format!(
                    "{namespace} is not sharded by {}: load it again with --phase load and the same --shard, or \
                     leave --shard out",
                    self.wish.pattern()
                ))
                .into());
            }
        }
        Ok(())
    }

    /// Records what each router adds to a read, with documents of the first collection that it spreads.
    async fn measure_router(
        &self,
        stage: &mut Stage,
        targets: &[Target],
        database: &str,
    ) -> Result<()> {
        for target in targets {
            let sharded = stage.measurement().sharding.iter();
            let mut sharded = sharded.flat_map(|sharding| &sharding.collections);
            let first = sharded.find(|collection| collection.variant == target.variant);
            let Some(first) = first.map(|first| first.name.clone()) else {
                continue;
            };
            let namespace = Namespace::new(database, &first)?;
            let measured = {
                let _step = stage
                    .progress
                    .step("reading through the router and past it");
                let measuring = router_cost::measure(target, &namespace, self.key());
                stage.asking(async { Ok(measuring.await) }).await?
            };
            match (measured, &mut stage.measurement().sharding) {
                (Ok(costs), Some(sharding)) => sharding.router.extend(costs),
                (Ok(_), None) => {}
                (Err(error), _) => stage.limit(Limitation {
                    what: "what the router adds to a read is not known".into(),
                    why: message_of(&error),
                    remedy: "use a login that the shards know, from where they can be reached"
                        .into(),
                }),
            }
        }
        Ok(())
    }

    /// Records how the documents of a collection are spread. `after` names the load; `in_doubt` counts writes that
    /// may or may not be there.
    async fn record_spread(
        &self,
        stage: &mut Stage,
        target: &Target,
        database: &str,
        after: &str,
        expected: &Expected,
        in_doubt: u64,
    ) -> Result<()> {
        let namespace = Namespace::new(database, &expected.collection)?;
        let (found, missing) = {
            let _step = stage.progress.step("counting documents by shard");
            let spread = spread(target, &namespace, expected.documents);
            stage.asking(spread).await?
        };
        missing.into_iter().for_each(|told| stage.limit(told));
        let found = ShardedCollection {
            variant: target.variant.clone(),
            after: after.into(),
            ..found
        };
        let lost = lost(&found, in_doubt);
        let sharding = &mut stage.measurement().sharding;
        let sharding = sharding.get_or_insert_with(|| self.record());
        sharding.collections.push(found);
        stage.session.save()?;
        lost.map_or(Ok(()), |reason| Err(Inconsistent(reason).into()))
    }
}

/// Prepares for a load as [`data::begin_load`] does; if collections are to be sharded and the server is a router, shards
/// those that do not exist afterwards.
pub async fn begin_load(
    sharding: Option<&Sharding>,
    stage: &mut Stage,
    target: &Target,
    database: &str,
    wanted: &DataSet,
    clients: u32,
    collections: &[LoadedCollection<'_>],
) -> Result<()> {
    let arguments = stage.session.document.arguments.clone();
    let beginning = data::begin_load(target, database, wanted, clients, &arguments);
    let Some(sharding) = sharding.filter(|_| target.routed().is_some()) else {
        return stage.asking(beginning).await;
    };
    let work = async {
        let plans = sharding.plans(target, database, clients, collections);
        let plans = plans.await?;
        beginning.await?;
        let created = sharding.create(target, database, &wanted.name, &plans);
        created.await
    };
    let missing = {
        let _step = stage.progress.step("sharding the collections");
        stage.asking(work).await?
    };
    missing.into_iter().for_each(|told| stage.limit(told));
    Ok(())
}

/// Records how the documents of collections are spread, if they were to be sharded and the server is a router. `after`
/// names the load; `in_doubt` counts writes that may or may not be there.
///
/// # Errors
/// Fails if the shards together do not hold what was loaded.
pub async fn verify_spread(
    sharding: Option<&Sharding>,
    stage: &mut Stage,
    target: &Target,
    database: &str,
    after: &str,
    expected: &[Expected],
    in_doubt: u64,
) -> Result<()> {
    if let Some(sharding) = sharding.filter(|_| target.routed().is_some()) {
        for expected in expected {
            let recorded =
                sharding.record_spread(stage, target, database, after, expected, in_doubt);
            recorded.await?;
        }
    }
    Ok(())
}

/// Refuses data of an earlier load that are not sharded as asked for, and records how they are spread.
pub async fn check_loaded(
    sharding: Option<&Sharding>,
    stage: &mut Stage,
    target: &Target,
    database: &str,
    collections: &[String],
) -> Result<()> {
    let Some(sharding) = sharding.filter(|_| target.routed().is_some()) else {
        return Ok(());
    };
    let loaded = sharding.ensure_loaded(target, database, collections);
    stage.asking(loaded).await?;
    for collection in collections {
        let found = Expected {
            collection: collection.clone(),
            documents: None,
        };
        let recorded = sharding.record_spread(stage, target, database, "", &found, 0);
        recorded.await?;
    }
    Ok(())
}

/// Ends the work on the servers: measures what a router adds, if collections were sharded, and drops the data if the
/// command line says so. Returns the work's result.
pub async fn end(
    sharding: Option<&Sharding>,
    stage: &mut Stage,
    targets: &[Target],
    args: &BenchTargetArgs,
    data_set: &str,
    worked: Result<()>,
) -> Result<()> {
    let worked = match (worked, sharding) {
        (Ok(()), Some(sharding)) => {
            sharding
                .measure_router(stage, targets, &args.database)
                .await
        }
        (worked, _) => worked,
    };
    data::drop_at_end(stage, targets, args, data_set, worked).await
}

/// Returns how a collection is sharded, for a decision that cannot do without.
async fn sharded(server: &Server, namespace: &Namespace) -> Result<Option<Sharded>> {
    match cluster::sharded(server, namespace).await {
        Err(ServerError::NotAuthorised { uri, .. }) => Err(NotPermitted(format!(
            "the login may not read on {uri} how {namespace} is sharded; {MAY_READ_CONFIG}"
        ))
        .into()),
        answer => Ok(answer?),
    }
}

/// Returns what to do when a question to the router was not answered.
pub fn remedy_for(error: &ServerError) -> String {
    match error {
        ServerError::NotAuthorised { .. } => MAY_READ_CONFIG.into(),
        _ => "ask again when the cluster has less to do".into(),
    }
}

fn no_router(why: &str) -> Usage {
    Usage(format!(
        "--shard works through a mongos only: {why}; name the mongos of a sharded cluster, or leave --shard out"
    ))
}
