//! Predicts what a rewriting would gain, how long the gain would last, and what it takes. Changes nothing.

use std::fs::File;
use std::path::Path;

use anyhow::Result;
use mongodb::bson::{Document, doc};
use rustix::fs::{Access, access, statvfs};
use seekscope_layout::decay::{from_update_rate, moved_share};
use seekscope_run::page_cache::resident_bytes;
use seekscope_run::{
    LayoutFile, Limitation, OrderLasts, ReorderPlan, ReorderScan, ReorderSpace, ReorderTime,
    ReorderVerdict, RunDocument, StorageFacts, WriteRate,
};
use seekscope_server::{Namespace, Server, first_batch, storage_facts};

use super::collection_files::CollectionFiles;
use super::{clustering, duration, write_rate, writers};
use crate::args::ReorderArgs;
use crate::exit::message_of;
use crate::layout::CollectionLayout;
use crate::progress::Progress;
use crate::session::limit;

/// Minimum share of a scan that order must save to be worth its price.
const GAIN_SHARE_MIN: f64 = 0.1;
/// A file cached to this share is hardly read from the disk.
const CACHED_SHARE_MIN: f64 = 0.95;
/// Share of sequential steps from which on a copy is no better: copies on mongod had 0.969 to 0.981.
const CONTIGUOUS_ALREADY: f64 = 0.95;
/// Contiguous share of a collection that one writer filled in order: 0.976 to 0.980 were measured on WiredTiger
/// 2.9.3 and 11.3.
const CONTIGUOUS_AFTER: f64 = 0.97;
/// Space that must stay free, as the reordering itself requires: a server whose disk is full dies.
const RESERVE_BYTES: u64 = 256 << 20;

/// The subject of the plan.
pub struct Subject<'a> {
    pub server: &'a Server,
    pub namespace: &'a Namespace,
    /// All keys of the index that decides the order; `None`: natural order.
    pub by: Option<&'a Document>,
    pub args: &'a ReorderArgs,
    pub progress: Progress,
}

impl Subject<'_> {
    /// Makes the plan, from the server's information and the layout of the files.
    pub async fn plan(
        &self,
        files: &CollectionFiles,
        layout: Option<&CollectionLayout>,
        document: &mut RunDocument,
    ) -> Result<ReorderPlan> {
        let (database, collection) = (self.namespace.database(), self.namespace.collection());
        let facts = storage_facts(self.server, database, &[collection]).await?;
        let file = layout.and_then(CollectionLayout::documents);
        let own_name = self.namespace.to_string();
        let scan = file.and_then(|file| scan_of(file, &own_name));
        let writes = {
            let _step = self.progress.step("watching the writes");
            write_rate::watch(self.server, self.namespace, self.args.watch).await
        };
        let path = files.path.as_deref();
        let mut plan = ReorderPlan {
            documents: facts.documents,
            data_bytes: facts.data_bytes,
            storage_bytes: facts.storage_bytes,
            index_bytes: facts.index_bytes,
            indexes: self.indexes().await?,
            cached_share: file
                .zip(path)
                .and_then(|(file, path)| cached_share(path, file)),
            clustering: self.clustering(file, &facts, document).await,
            lasts: writes
                .as_ref()
                .zip(file)
                .map(|(writes, file)| lasts(writes, file.leaf_pages)),
            writes,
            space: space(&facts, path),
            blocking: writers::blocking(self.server, &self.args.writers).await?,
            scan,
            ..ReorderPlan::default()
        };
        // On a standalone server nobody may write meanwhile.
        let followed = plan.writes.clone().filter(|_| plan.blocking.replica_set);
        plan.time = plan.scan.as_ref().map(|scan| {
            let along = plan.clustering.as_ref();
            let time = duration::alone(&facts, plan.indexes, scan, self.args.max_rate, along);
            match plan.blocking.replica_set {
                true => duration::with_catch_up(time, followed.as_ref(), plan.indexes),
                false => time,
            }
        });
        if let (Some(lasts), Some(writes), Some(time), Some(file)) =
            (&mut plan.lasts, &followed, &plan.time, file)
        {
            lasts.share_at_swap = Some(share_at_swap(writes, time, file.leaf_pages));
        }
        let is_single = file.is_some_and(|file| file.leaf_pages <= 1);
        plan.verdict = match facts.documents == 0 || is_single {
            true => ReorderVerdict::NothingToOrder,
            false => verdict(&plan),
        };
        Ok(plan)
    }

    async fn indexes(&self) -> Result<u64> {
        let command = doc! { "listIndexes": self.namespace.collection() };
        let reply = self
            .server
            .command(self.namespace.database(), command)
            .await?;
        Ok(first_batch(&reply).count() as u64)
    }

    async fn clustering(
        &self,
        file: Option<&LayoutFile>,
        facts: &StorageFacts,
        document: &mut RunDocument,
    ) -> Option<seekscope_run::Clustering> {
        let (keys, file) = (self.by?, file?);
        let _step = self
            .progress
            .step("looking where the neighbours of the index lie");
        let (server, namespace) = (self.server, self.namespace);
        let sampled =
            clustering::sample(server, namespace, keys, file.leaf_pages, facts.documents).await;
        let why = match sampled {
            Ok(Some(clustering)) => return Some(clustering),
            Ok(None) => {
                "the server reports no record IDs, or none that are numbers in the order of its files"
                    .into()
            }
            Err(error) => message_of(&error),
        };
        let limitation = Limitation {
            what: "how far apart the neighbours of the index lie is not known".into(),
            why,
            remedy: String::new(),
        };
        limit(document, limitation);
        None
    }
}

fn scan_of(file: &LayoutFile, own_name: &str) -> Option<ReorderScan> {
    let (scan, order) = (file.predicted_scan.as_ref()?, file.order.as_ref()?);
    Some(ReorderScan {
        now_s: scan.now_s,
        now_low_s: scan.now_low_s,
        now_high_s: scan.now_high_s,
        ordered_s: match file.has_large_leaves() {
            true => scan.now_s,
            false => scan.ordered_s,
        },
        after_compact_s: scan.after_compact_s,
        free_bytes: file.free_bytes,
        file_bytes: file.file_bytes,
        sequential_share: order.sequential_share,
        seeks: order.seeks,
        shared_table: file
            .namespace
            .as_deref()
            .is_some_and(|name| name != own_name),
    })
}

/// Returns the cached share of the file. The kernel reveals it only to those who may write the file.
fn cached_share(directory: &Path, file: &LayoutFile) -> Option<f64> {
    let path = directory.join(&file.file);
    access(&path, Access::WRITE_OK).ok()?;
    let opened = File::open(&path).ok()?;
    let bytes = opened.metadata().ok()?.len();
    let resident = resident_bytes(&opened, 0, bytes).ok()?;
    (bytes > 0).then(|| (resident as f64 / bytes as f64).min(1.0))
}

fn lasts(writes: &WriteRate, leaf_pages: u64) -> OrderLasts {
    let per_hour = writes.moves_per_hour();
    let basis = format!(
        "{} updates and removes in {:.0} s",
        writes.updates + writes.removes,
        writes.watched_s
    );
    let decay = from_update_rate(CONTIGUOUS_AFTER, leaf_pages, per_hour, basis);
    let until = |share: f64| Some(decay.half_life_hours? * (CONTIGUOUS_AFTER / share).log2());
    OrderLasts {
        hours_to_0_9: until(0.9),
        hours_to_0_5: until(0.5),
        share_at_swap: None,
        decay,
    }
}

/// Returns the contiguous share at the swap. Half of what others change during the copy is in documents that
/// are yet to be copied; everything after that is applied to the copy and moves its leaves.
fn share_at_swap(writes: &WriteRate, time: &ReorderTime, leaf_pages: u64) -> f64 {
    let moved_s = time.total_s() - time.copy_s / 2.0;
    let moves = writes.moves_per_hour() / 3600.0 * moved_s;
    CONTIGUOUS_AFTER * (1.0 - moved_share(leaf_pages, moves)).powi(2)
}

fn space(facts: &StorageFacts, path: Option<&Path>) -> ReorderSpace {
    let replaced = facts.storage_bytes.saturating_add(facts.index_bytes);
    let filesystem = path.and_then(|path| statvfs(path).ok());
    ReorderSpace {
        // Times 1.2.
        needed_bytes: replaced
            .saturating_add(replaced / 5)
            .saturating_add(RESERVE_BYTES),
        free_bytes: filesystem.map(|fs| fs.f_bavail.saturating_mul(fs.f_frsize)),
    }
}

/// Returns the verdict: along an index the leaves of its range queries decide, else the seconds of a scan.
fn verdict(plan: &ReorderPlan) -> ReorderVerdict {
    let ReorderSpace {
        needed_bytes,
        free_bytes,
    } = plan.space;
    if free_bytes.is_some_and(|free_bytes| free_bytes < needed_bytes) {
        return ReorderVerdict::NoRoom;
    }
    let gain_share = match (&plan.clustering, &plan.scan) {
        (Some(c), _) => 1.0 - c.leaves_per_1000_ordered / c.leaves_per_1000_now.max(1.0),
        (None, Some(scan)) => scan.gain_share(),
        (None, None) => return ReorderVerdict::Unknown,
    };
    let in_order = |scan: &ReorderScan| scan.sequential_share >= CONTIGUOUS_ALREADY;
    if plan.clustering.is_none() && plan.scan.as_ref().is_some_and(in_order) {
        ReorderVerdict::InOrder
    } else if gain_share < GAIN_SHARE_MIN {
        ReorderVerdict::LittleGain
    } else if plan
        .cached_share
        .is_some_and(|share| share >= CACHED_SHARE_MIN)
    {
        ReorderVerdict::Cached
    } else if is_undone(plan) {
        ReorderVerdict::Undone
    } else {
        ReorderVerdict::Worthwhile
    }
}

/// Returns whether the copy would be no more ordered than the collection is now. Along an index documents stay
/// neighbours whatever happens to the leaves, and counts of the whole server are only an upper limit for the
/// collection.
fn is_undone(plan: &ReorderPlan) -> bool {
    let own = plan
        .writes
        .as_ref()
        .is_some_and(|writes| writes.of_collection);
    let at_swap = plan.lasts.as_ref().and_then(|lasts| lasts.share_at_swap);
    match (&plan.clustering, &plan.scan, at_swap) {
        (None, Some(scan), Some(at_swap)) => own && at_swap <= scan.sequential_share,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::Clustering;

    use super::*;

    fn plan(now_s: f64, cached_share: f64) -> ReorderPlan {
        ReorderPlan {
            scan: Some(ReorderScan {
                now_s,
                ordered_s: 2.0,
                ..ReorderScan::default()
            }),
            cached_share: Some(cached_share),
            ..ReorderPlan::default()
        }
    }

    #[test]
    fn what_cannot_win_is_said() {
        assert_eq!(verdict(&plan(31.0, 0.1)), ReorderVerdict::Worthwhile);
        assert_eq!(verdict(&plan(2.1, 0.1)), ReorderVerdict::LittleGain);
        assert_eq!(verdict(&plan(31.0, 0.99)), ReorderVerdict::Cached);
        assert_eq!(verdict(&ReorderPlan::default()), ReorderVerdict::Unknown);
        // A scan without a single seek would take less, which is no copy's order.
        let mut ordered = plan(31.0, 0.1);
        ordered.scan.as_mut().unwrap().sequential_share = 0.969;
        assert_eq!(verdict(&ordered), ReorderVerdict::InOrder);
        let mut by_index = plan(2.0, 0.0);
        by_index.clustering = Some(Clustering {
            leaves_per_1000_now: 700.0,
            leaves_per_1000_ordered: 40.0,
            ..Clustering::default()
        });
        assert_eq!(verdict(&by_index), ReorderVerdict::Worthwhile);
    }

    #[test]
    fn what_others_would_undo_is_not_worth_it() {
        let mut busy = plan(31.0, 0.1);
        busy.scan.as_mut().unwrap().sequential_share = 0.3;
        let writes = WriteRate {
            watched_s: 1.0,
            updates: 1_500,
            of_collection: true,
            ..WriteRate::default()
        };
        let time = ReorderTime {
            copy_s: 10.0,
            check_s: 3.0,
            indexes_s: 4.0,
            catch_up_s: Some(7.3),
            catch_up_never_ends: false,
        };
        // 28,929 moves within 19.3 s, in 14,000 leaves: each leaf stays in its place with a probability of
        // 0.127.
        let share = share_at_swap(&writes, &time, 14_000);
        assert!((share - 0.0156).abs() < 0.001, "{share}");
        busy.lasts = Some(OrderLasts {
            share_at_swap: Some(share),
            ..OrderLasts::default()
        });
        busy.writes = Some(writes);
        assert_eq!(verdict(&busy), ReorderVerdict::Undone);
        busy.writes.as_mut().unwrap().of_collection = false;
        assert_eq!(verdict(&busy), ReorderVerdict::Worthwhile);
    }

    /// 4,546 leaves and 1,000 updates an hour leave 0.97 × 0.645 after an hour.
    #[test]
    fn order_lasts_as_decay_says() {
        let writes = WriteRate {
            watched_s: 3600.0,
            updates: 900,
            removes: 100,
            inserts: 77,
            ..WriteRate::default()
        };
        let lasts = lasts(&writes, 4546);
        let share_after =
            |hours: f64| CONTIGUOUS_AFTER * (1.0 - 1.0 / 4546.0f64).powf(2000.0 * hours);
        assert!((share_after(lasts.hours_to_0_9.unwrap()) - 0.9).abs() < 1e-6);
        assert!((share_after(lasts.hours_to_0_5.unwrap()) - 0.5).abs() < 1e-6);
        let still = super::lasts(&WriteRate::default(), 4546);
        assert_eq!(still.hours_to_0_5, None);
    }
}
