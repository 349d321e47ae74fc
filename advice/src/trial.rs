//! Stores a sample in several ways on a server of our own, and measures what queries read of each with cold caches.

mod asked;
mod counters;
mod inserts;
mod pages;
mod queries;
mod rounds;
mod storing;

use std::collections::BTreeMap;
use std::time::Instant;

use bson::{Document, RawDocumentBuf};
use seekscope_run::{AdviceTrial, QueryShape, ShapeCost, TargetFacts, units};
use seekscope_server::{PrivateServer, ProcFs, Server, page_cache};

pub use storing::Stored;

use crate::AdviceError;
use crate::collection::PagesRead;
use crate::predict::{Whole, distinct, draws, matching_of_whole};
use crate::proposals::asks_by_age;
use crate::sample::{SampleFacts, Wanted, copy_newest};
use crate::way::Way;
use asked::Asked;
use queries::Query;
use rounds::{Round, cost, measured};

const DATABASE: &str = "advise";
/// The sample as it was read: the newest document first.
const SAMPLED: &str = "sampled";
/// Queries asked in a row after a cold start are so few that they hardly meet each other's leaves.
const QUERIES_MAX: u64 = 20;
const SHARE_OF_LEAVES: f64 = 0.25;
/// Queries return what is known of them if that is this many times less than what matches.
const STOPPED: f64 = 1.2;
/// How often each query is asked with everything cached: whatever else runs on the host makes some slower, and none quicker.
const WARM_TIMES: u32 = 3;
/// How often the time of unpacking is measured.
const UNPACKED_TIMES: u32 = 3;

/// How a trial is made.
#[derive(Debug, Clone)]
pub struct TrialOptions {
    /// Cold starts for each shape of each way, at least 2.
    pub rounds: u32,
    /// Options of the collection that matter for its files, as for the command `create`.
    pub create: Document,
    /// Specifications of the indexes of the target, as `listIndexes` answers.
    pub indexes: Vec<Document>,
    /// Documents of the target.
    pub documents: u64,
    /// Mean size of the pages of the target's collection without compression, bytes, if it is known.
    pub page_bytes: Option<f64>,
    /// The same of its indexes, by name, if they are known.
    pub index_page_bytes: BTreeMap<String, f64>,
}

/// What it takes to add a document to a way.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct InsertCost {
    /// Time of a quick one with everything cached, ns; `None` if the sample is too small.
    pub ns: Option<f64>,
    /// Blocks of the index on `_id` that an insert reads of the whole with cold caches, while many are inserted; `None`
    /// if they were not counted.
    pub id_blocks: Option<f64>,
}

/// The queries of one shape that every way is asked.
#[derive(Debug)]
pub struct Questions {
    shape: QueryShape,
    /// Whether what a query returns lies within a stretch of the file.
    is_local: bool,
    /// Documents of the sample that match one on average, if it ends before it has met all that match, in the sample or in
    /// the whole.
    matching: Option<f64>,
    /// Values that the longest list of one holds on average; 1 without lists.
    values: f64,
    /// Each row is asked after a cold start of its own.
    rows: Vec<Vec<Query>>,
}

/// What a way costs for the queries of a shape, and what they found.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    pub cost: ShapeCost,
    /// Documents in the answer to each query that was asked, row by row, by its number in the row. A way that examines much
    /// is asked fewer of each row, and one of which the server plans some otherwise is not asked these.
    pub returned: Vec<BTreeMap<usize, u64>>,
}

/// The server of the trial.
#[derive(Debug)]
pub struct Trial {
    private: PrivateServer,
    server: Server,
    options: TrialOptions,
    target: TargetFacts,
    /// Time that it takes to make a page of a block of the present way, ns per byte; `None` if it has too few.
    unpack_ns_per_byte: Option<f64>,
    /// Bytes of blocks for each byte of documents of the present way, and the size of the largest pages in which it is
    /// stored, bytes, once it is.
    present_compressed: f64,
    present_pages: Option<f64>,
    /// Documents that are added with cold caches, as many to each way as the present one's index on `_id` allows for.
    cold_inserts: usize,
    begun: Instant,
}

impl Trial {
    /// Starts the server.
    ///
    /// # Errors
    /// Fails if it does not start.
    pub async fn start(
        mut private: PrivateServer,
        options: TrialOptions,
    ) -> Result<Self, AdviceError> {
        let server = start(&mut private).await?;
        let target = server.facts(&ProcFs::host()).await.target;
        Ok(Self {
            private,
            server,
            options,
            target,
            unpack_ns_per_byte: None,
            present_compressed: 1.0,
            present_pages: None,
            cold_inserts: 0,
            begun: Instant::now(),
        })
    }

    /// Returns which server it is, and how long the trial has lasted.
    pub fn facts(&self) -> AdviceTrial {
        AdviceTrial {
            product: self.target.product.clone(),
            version: self.target.version.clone(),
            elapsed_s: self.begun.elapsed().as_secs_f64(),
        }
    }

    /// Copies the sample from the target.
    ///
    /// # Errors
    /// Fails if a server does, and if the target has no documents.
    pub async fn take_sample(
        &self,
        target: &Server,
        wanted: Wanted<'_>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<SampleFacts, AdviceError> {
        let to = self.collection(SAMPLED);
        let facts = copy_newest(target, wanted, &to, &self.server, progress).await?;
        inserts::set_aside(&self.server, facts.documents).await?;
        Ok(facts)
    }

    /// Draws the queries of a shape, which all ways are asked.
    ///
    /// # Errors
    /// Fails if the server does.
    pub async fn draw(
        &self,
        shape: &QueryShape,
        sample: &SampleFacts,
        present: &Stored,
    ) -> Result<Questions, AdviceError> {
        let rounds = u64::from(self.options.rounds.max(2));
        let mut drawn = queries::draw(&self.server, shape, rounds).await?;
        let values = queries::mean_values(&drawn);
        let is_free = shape.sort.is_empty() && shape.range.is_empty();
        let matching = match shape.returned {
            Some(_) if !is_free => None,
            _ => Some(queries::mean_matching(&self.server, &drawn).await?),
        };
        let returned = shape.returned.or(matching).unwrap_or(0.0);
        let returned = returned.min(shape.limit.unwrap_or(f64::INFINITY));
        let whole = self.options.documents as f64 / sample.documents.max(1) as f64;
        let of_whole = |matching| matching_of_whole(matching, values, whole.max(1.0));
        let matching = matching.filter(|matching| {
            is_free && ends_early(shape, returned, *matching, of_whole(*matching))
        });
        let room = SHARE_OF_LEAVES * present.leaves as f64 / returned.max(1.0);
        let in_a_row = units::whole(room).clamp(1, QUERIES_MAX);
        if in_a_row > 1 {
            let more = rounds * (in_a_row - 1);
            drawn.extend(queries::draw(&self.server, shape, more).await?);
        }
        if matching.is_some() && shape.limit.is_none() {
            queries::end_after(&mut drawn, returned);
        }
        let rows = drawn.chunks(usize::try_from(in_a_row).unwrap_or(1));
        Ok(Questions {
            shape: shape.clone(),
            is_local: asks_by_age(shape, sample),
            matching,
            values,
            rows: rows.map(queries::different).collect(),
        })
    }

    /// Stores the sample in a way, which is the present one if `number` is 0.
    ///
    /// # Errors
    /// Fails if the server does.
    pub async fn store(&mut self, number: usize, way: &Way) -> Result<Stored, AdviceError> {
        let collection = collection_of(number);
        let (page_bytes, keeps_pages) = self.pages(way).await?;
        let load = storing::store(&self.server, &collection, way, &self.options, page_bytes);
        let load = load.await?;
        self.restart().await?;
        self.evict()?;
        let stored = storing::size(&self.server, &collection, load).await?;
        let ns_per_byte = match way {
            Way::Present => {
                self.unpack_ns_per_byte = self.unpacking(&collection, &stored).await?;
                self.unpack_ns_per_byte
            }
            Way::Compressor { .. } => self.unpacking(&collection, &stored).await?,
            // Their blocks are compressed like the present ones.
            _ => self.unpack_ns_per_byte,
        };
        Ok(Stored {
            unpack_ns: ns_per_byte.map(|ns| ns * stored.page_bytes_of_many),
            keeps_pages,
            ..stored
        })
    }

    /// Returns the size of the largest pages in which a way is stored, bytes, and whether a page of the whole then holds as
    /// much as one of the target's file: where it stays, and where another compressor makes the same documents no smaller.
    async fn pages(&mut self, way: &Way) -> Result<(f64, bool), AdviceError> {
        if let Some(page_bytes) = self.present_pages.filter(|_| way.keeps_file()) {
            return Ok((page_bytes, true));
        }
        let compressed = storing::compressed(&self.server, way, &self.options).await?;
        let anew = pages::of_large_file(&storing::creation(way, &self.options), compressed);
        if matches!(way, Way::Present) {
            let mean = self.options.page_bytes;
            let known = mean.map(|mean| pages::of_mean(&self.options.create, mean));
            self.present_compressed = compressed.unwrap_or(1.0);
            self.present_pages = Some(known.unwrap_or(anew));
            return Ok((known.unwrap_or(anew), true));
        }
        let is_as_small = compressed
            .is_some_and(|compressed| pages::are_as_small(compressed, self.present_compressed));
        match self.present_pages {
            Some(present) if is_as_small && matches!(way, Way::Compressor { .. }) => {
                Ok((present, true))
            }
            _ => Ok((anew, false)),
        }
    }

    /// Returns the time that the server takes to make a page of a block that is in the page cache, ns per byte of the
    /// page: the least of some, since others on the host make it longer.
    async fn unpacking(
        &mut self,
        collection: &str,
        stored: &Stored,
    ) -> Result<Option<f64>, AdviceError> {
        let mut least: Option<f64> = None;
        for _ in 0..UNPACKED_TIMES {
            self.restart().await?;
            let one = storing::unpack_ns_per_byte(&self.server, collection, stored).await?;
            least = one.map(|ns| least.map_or(ns, |least| ns.min(least)));
        }
        Ok(least)
    }

    /// Measures what it takes to add documents to a stored way. Nothing else may be measured of it afterwards.
    ///
    /// # Errors
    /// Fails if the server does.
    pub async fn measure_inserts(
        &mut self,
        number: usize,
        way: &Way,
        stored: &Stored,
        counts_ids: bool,
    ) -> Result<InsertCost, AdviceError> {
        let collection = collection_of(number);
        let [first, timed, cold] = inserts::parts(&self.server, way).await?;
        inserts::add(&self.server, &collection, way, &first).await?;
        Ok(InsertCost {
            ns: inserts::add(&self.server, &collection, way, &timed).await?,
            id_blocks: match counts_ids {
                true => self.id_blocks(&collection, way, stored, &cold).await?,
                false => None,
            },
        })
    }

    /// Returns the blocks of the index on `_id` that an insert reads of the whole, while some are added with cold caches.
    async fn id_blocks(
        &mut self,
        collection: &str,
        way: &Way,
        stored: &Stored,
        documents: &[RawDocumentBuf],
    ) -> Result<Option<f64>, AdviceError> {
        self.restart().await?;
        counters::id_index(&self.server, DATABASE, collection).await?;
        self.evict()?;
        let before = counters::id_index(&self.server, DATABASE, collection).await?;
        if matches!(way, Way::Present) {
            self.cold_inserts = inserts::few_for(before.leaves, documents.len());
        }
        let few = &documents[..self.cold_inserts.min(documents.len())];
        inserts::add(&self.server, collection, way, few).await?;
        let after = counters::id_index(&self.server, DATABASE, collection).await?;
        let more = self.options.documents as f64 / stored.sampled.max(1) as f64;
        let hit = after.pages_read.saturating_sub(before.pages_read);
        let count = few.len() as f64;
        let all = draws(hit as f64, before.leaves, count);
        let of_whole = distinct(all, before.leaves * more.max(1.0));
        Ok((count > 0.0).then_some(of_whole / count))
    }

    /// Asks a stored way its questions, each row of them after a cold start; `None` if it cannot be asked them.
    ///
    /// # Errors
    /// Fails if the server does, or counts no blocks.
    pub async fn measure(
        &mut self,
        number: usize,
        way: &Way,
        stored: &Stored,
        questions: &Questions,
    ) -> Result<Option<Answered>, AdviceError> {
        if !way.answers(&questions.shape) {
            return Ok(None);
        }
        let collection = collection_of(number);
        let plans_vary = storing::plans_vary(way, &self.options.indexes);
        let shape = &questions.shape;
        let serving = match plans_vary {
            true => None,
            false => storing::serving_index(way, &self.options.indexes, shape),
        };
        let choice = (plans_vary, serving.as_deref());
        let mut planned: Option<Asked> = None;
        let mut rounds = Vec::new();
        for row in &questions.rows {
            let asked = match planned.take().filter(|_| !plans_vary) {
                Some(asked) => asked,
                None => Asked::plan(&self.server, &collection, way, shape, row, choice).await?,
            };
            let whole = self.whole(way, stored, asked.index_name());
            rounds.push(self.round(&collection, stored, &asked, row, whole).await?);
            planned = Some(asked);
        }
        let each_ns = match &planned {
            Some(asked) => asked.each_ns(&self.server, shape).await,
            None => None,
        };
        let measured = measured(&rounds, stored, questions);
        Ok(Some(Answered {
            cost: cost(&rounds, &measured, each_ns),
            returned: rounds.into_iter().map(|round| round.returned).collect(),
        }))
    }

    /// Asks a row of queries after a cold start.
    async fn round(
        &mut self,
        collection: &str,
        stored: &Stored,
        asked: &Asked,
        row: &[Query],
        whole: Whole,
    ) -> Result<Round, AdviceError> {
        self.restart().await?;
        // Whoever asks for counters has the files opened, and so the upper pages of their trees read, which a server in use
        // has in its cache. A query would also put one of the few leaves of a sample into it.
        counters::read(&self.server, DATABASE, collection).await?;
        self.evict()?;
        let before = counters::read(&self.server, DATABASE, collection).await?;
        let queries = asked.of_row(row);
        let (mut cold_ns, mut warm_ns) = (Vec::new(), Vec::new());
        let mut returned = BTreeMap::new();
        let (mut first, mut most) = (None, queries.len());
        for (number, query) in &queries {
            if cold_ns.len() >= most {
                break;
            }
            let (found, ns) = asked.ask(&self.server, query).await?;
            returned.insert(*number, found);
            cold_ns.push(ns as f64);
            if first.is_none() {
                let after = counters::read(&self.server, DATABASE, collection).await?;
                let hit = after.collection.saturating_sub(before.collection).max(1);
                // One that examines much more than it returns leaves much in the cache for the next.
                let room = SHARE_OF_LEAVES * stored.leaves as f64 / hit as f64;
                most = usize::try_from(units::whole(room)).map_or(most, |room| room.max(1));
                first = Some(after);
            }
        }
        let of_first = first.map_or(PagesRead::default(), |first| {
            first.indexes.since(before.indexes)
        });
        let after = counters::read(&self.server, DATABASE, collection).await?;
        for (_, query) in queries.iter().take(cold_ns.len()) {
            let mut least = u64::MAX;
            for _ in 0..WARM_TIMES {
                least = least.min(asked.ask(&self.server, query).await?.1);
            }
            warm_ns.push(least as f64);
        }
        Ok(Round {
            plan: asked.plan,
            whole,
            returned,
            collection_blocks: after.collection.saturating_sub(before.collection) as f64,
            collection_bytes: after
                .collection_bytes
                .saturating_sub(before.collection_bytes) as f64,
            index_blocks: of_first.pages as f64,
            index_bytes: of_first.bytes as f64,
            cold_ns,
            warm_ns,
            nothing_ns: asked.ask_nothing(&self.server).await? as f64,
        })
    }

    /// Returns what the whole collection has that a stored way has not. `index` is the one that is used, by name.
    fn whole(&self, way: &Way, stored: &Stored, index: Option<&str>) -> Whole {
        let documents = self.options.documents.max(stored.sampled);
        // Files that are written anew are written as in the trial.
        let anew = match documents > stored.sampled {
            true => stored.page_bytes_of_many,
            false => stored.page_bytes,
        };
        let as_it_is = self.options.page_bytes.filter(|_| stored.keeps_pages);
        Whole {
            documents: documents as f64 / stored.sampled.max(1) as f64,
            page_bytes: as_it_is.unwrap_or(anew),
            index_page_bytes: index
                // What compresses the collection does not change its indexes.
                .filter(|_| way.keeps_file() || matches!(way, Way::Compressor { .. }))
                .and_then(|name| self.options.index_page_bytes.get(name).copied()),
        }
    }

    fn collection(&self, name: &str) -> mongodb::Collection<RawDocumentBuf> {
        self.server.database(DATABASE).collection(name)
    }

    async fn restart(&mut self) -> Result<(), AdviceError> {
        self.private.stop().await?;
        self.server = start(&mut self.private).await?;
        Ok(())
    }

    fn evict(&self) -> Result<(), AdviceError> {
        page_cache::evict(self.private.data_directory())?;
        Ok(())
    }
}

async fn start(private: &mut PrivateServer) -> Result<Server, AdviceError> {
    let local = private.start::<AdviceError>().await?;
    Ok(Server::connect(&local.uri()).await?)
}

/// Returns whether a query ends before it has met all that matches, which are so many documents of the sample and of the
/// whole.
fn ends_early(shape: &QueryShape, returned: f64, matching: f64, of_whole: f64) -> bool {
    match shape.limit {
        Some(limit) => of_whole > limit,
        // The whole has at least what the sample has: who is known to return fewer stops there.
        None => shape.returned.is_some() && matching > STOPPED * returned,
    }
}

fn collection_of(number: usize) -> String {
    format!("way{number}")
}
