//! Measures what a router adds to the time of a read: the same documents are read through it and directly from their
//! shard, in turn, one at a time. Only reads: a shard takes writes past its router, but should not be given any.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use mongodb::bson::{Bson, Document, doc};
use seekscope_run::RouterCost;
use seekscope_server::{Namespace, Server, ServerError, first_batch};
use seekscope_stats::batch_means;
use seekscope_workload::sharding::KeyField;
use tokio::time::timeout;

use crate::bench::target::Target;

/// Documents that are read from each shard.
const PAIRS: usize = 400;
/// Pairs that are not counted, while connections and plans are new.
const WARM_UP: usize = 40;
/// More shards would tell no more of the same router.
const SHARDS_MAX: usize = 4;
/// Time limit for each shard.
const LIMIT: Duration = Duration::from_secs(10);
const ALPHA: f64 = 0.05;

/// Measures it with documents of the collection, on each shard whose primary can be reached.
pub async fn measure(
    target: &Target,
    namespace: &Namespace,
    key: &KeyField,
) -> Result<Vec<RouterCost>> {
    let router = target.server()?;
    let shards = target
        .routed()
        .into_iter()
        .flat_map(|routed| &routed.shards);
    let reached = shards.filter_map(|shard| Some((&shard.name, shard.primary.as_ref()?)));
    let mut costs = Vec::new();
    for (shard, primary) in reached.take(SHARDS_MAX) {
        let reads = Reads {
            router,
            shard: &primary.server,
            namespace,
            key: key.as_str(),
            until: Instant::now() + LIMIT,
        };
        let pairs = timeout(2 * LIMIT, reads.pairs()).await;
        let pairs = pairs.map_err(|_| anyhow!("{} did not answer in time", primary.name))??;
        costs.extend(cost(&pairs).map(|cost| RouterCost {
            variant: target.variant.clone(),
            collection: namespace.collection().into(),
            shard: shard.clone(),
            ..cost
        }));
    }
    Ok(costs)
}

/// The reads of one shard's documents.
struct Reads<'a> {
    router: &'a Server,
    shard: &'a Server,
    namespace: &'a Namespace,
    key: &'a str,
    until: Instant,
}

/// Times of the same read, ns.
#[derive(Debug, Clone, Copy)]
struct Pair {
    through_router_ns: f64,
    direct_ns: f64,
}

impl Reads<'_> {
    async fn pairs(&self) -> Result<Vec<Pair>, ServerError> {
        let mut pairs = Vec::new();
        for (number, value) in self.values().await?.into_iter().enumerate() {
            if Instant::now() > self.until {
                break;
            }
            let find = doc! {
                "find": self.namespace.collection(),
                "filter": { self.key: value },
                "limit": 1,
                "singleBatch": true,
            };
            // The first read brings the document into the cache, so that the disk has no part in the two that count.
            let cached = self.read(self.shard, &find).await?;
            let (router, shard);
            if number % 2 == 0 {
                router = self.read(self.router, &find).await?;
                shard = self.read(self.shard, &find).await?;
            } else {
                shard = self.read(self.shard, &find).await?;
                router = self.read(self.router, &find).await?;
            }
            // A document that only one of the two finds was moved meanwhile, or is a copy that a move has left.
            if let (Some(_), Some(through_router_ns), Some(direct_ns)) = (cached, router, shard)
                && number >= WARM_UP
            {
                pairs.push(Pair {
                    through_router_ns,
                    direct_ns,
                });
            }
        }
        Ok(pairs)
    }

    /// Returns the key's values of documents that the shard holds, drawn at random.
    async fn values(&self) -> Result<Vec<Bson>, ServerError> {
        let size = i64::try_from(WARM_UP + PAIRS).unwrap_or(i64::MAX);
        let value = format!("${}", self.key);
        let pipeline = [
            doc! { "$sample": { "size": size } },
            doc! { "$project": { "_id": 0, "value": value } },
        ];
        let command = doc! {
            "aggregate": self.namespace.collection(), "pipeline": pipeline.to_vec(),
            "cursor": { "batchSize": size },
        };
        let database = self.namespace.database();
        let reply = self.shard.command(database, command).await?;
        let values = first_batch(&reply).filter_map(|document| document.get("value").cloned());
        Ok(values.collect())
    }

    /// Returns how long a read took; `None` if it found nothing.
    async fn read(&self, server: &Server, find: &Document) -> Result<Option<f64>, ServerError> {
        let start = Instant::now();
        let reply = server
            .command(self.namespace.database(), find.clone())
            .await?;
        let took_ns = start.elapsed().as_nanos() as f64;
        Ok(first_batch(&reply).next().map(|_| took_ns))
    }
}

/// Sums up the pairs of one shard; `None` if there are none.
fn cost(pairs: &[Pair]) -> Option<RouterCost> {
    let count = pairs.len() as f64;
    let mean = |of: fn(&Pair) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let added: Vec<f64> = pairs
        .iter()
        .map(|pair| pair.through_router_ns - pair.direct_ns)
        .collect();
    let interval = batch_means(&added).map(|added| added.interval(ALPHA));
    (!pairs.is_empty()).then(|| RouterCost {
        pairs: pairs.len() as u64,
        through_router_ns: mean(|pair| pair.through_router_ns),
        direct_ns: mean(|pair| pair.direct_ns),
        added_ns: added.iter().sum::<f64>() / count,
        added_low_ns: interval.map(|(low, _)| low),
        added_high_ns: interval.map(|(_, high)| high),
        ..RouterCost::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_router_adds_is_the_difference_of_pairs() {
        let pair = |n: u32| Pair {
            direct_ns: 200.0 + f64::from(n % 7),
            through_router_ns: 500.0 + f64::from(n % 5),
        };
        let pairs: Vec<Pair> = (0..400).map(pair).collect();
        let cost = cost(&pairs).unwrap();
        assert_eq!((cost.pairs, cost.through_router_ns), (400, 502.0));
        assert!((cost.added_ns - 299.0).abs() < 0.1, "{cost:?}");
        let (low, high) = cost.added_low_ns.zip(cost.added_high_ns).unwrap();
        assert!(low < 299.0 && 299.0 < high && high - low < 1.0, "{cost:?}");
        let few = super::cost(&pairs[..3]).unwrap();
        assert_eq!((few.pairs, few.added_low_ns), (3, None));
        assert_eq!(super::cost(&[]), None);
    }
}
