//! Predicts the blocks read from the whole collection from those that the trial's queries read from a sample.
//!
//! What a query returns of a stretch of time lies in the sample as it lies in the whole, since the sample is such a
//! stretch itself: it reads as many bytes of pages. How many pages those are differs within a file by a half and more,
//! since WiredTiger tries out how much on a page compresses to a block of the wanted size; so bytes are counted, and
//! divided by the mean size of a page.
//!
//! Other documents lie anywhere. They are drawn from the leaves like balls from an urn: of `d` draws from `L` leaves,
//! `L (1 - e^(-d/L))` are different ones. In the sample several documents share a leaf by chance that they do not
//! share in the whole; what the draws were is found by inverting the formula, and put into it again with the leaves
//! of the whole. Documents that lie side by side make few draws, of which next to none coincide, so the same formula
//! leaves them as they are.
//!
//! The pages of the whole hold less than those of the trial where documents were deleted, or were inserted in between,
//! and then neighbours lie on several pages that the trial has on one. The same holds of an index: one that was built over
//! documents that were there has full leaves, those of the trial are filled by inserts.
//!
//! The trees of the whole are deeper than those of the sample, whose inner pages all are in the root. Of the whole the root
//! and one page of each level below it are read when the file is opened; the others are read with the first leaf below them.
//! A server in use has most of them in its cache, and counts those that it asks for among its hits.
//!
//! Where a query does not read a stretch of an index but leaps through it (a range of the first key and a value of the
//! second: from each value of the first to the place of the second), more keys in between do not make more leaps, but
//! the leaps go to leaves further apart.

/// Children of an inner page of a collection's tree, which has 4 KiB with MongoDB's settings: a key and an address for each.
const COLLECTION_CHILDREN: f64 = 190.0;
/// The same of an index, whose inner pages have 16 KiB, with keys of about 25 bytes.
const INDEX_CHILDREN: f64 = 400.0;
/// The share by which documents may, by chance, lie on more leaves than expected.
const BY_CHANCE: f64 = 0.05;
/// The share by which they may lie on fewer, where some leaves are fuller than others.
const FEWER_BY_CHANCE: f64 = 0.1;
/// Documents of which this share lie on leaves of their own lie so far apart that it does not matter how much is on a
/// leaf.
const ALONE: f64 = 0.9;
/// A scan that reads this share of the documents reads all.
const ALL: f64 = 0.99;
/// A query that examines less than this share of the keys on the leaves that it reads leaps through them.
const LEAPT: f64 = 0.5;

/// Returns the number of different leaves that this many draws from `leaves` hit on average.
pub fn distinct(draws: f64, leaves: f64) -> f64 {
    if leaves < 1.0 || draws <= 0.0 {
        return 0.0;
    }
    leaves * -(-draws / leaves).exp_m1()
}

/// Returns the draws that hit this many different ones of `leaves`, at most `most`: no document is on two leaves.
pub fn draws(distinct: f64, leaves: f64, most: f64) -> f64 {
    if leaves < 1.0 || distinct <= 0.0 {
        return 0.0;
    }
    let share = distinct / leaves;
    let draws = match share < 1.0 {
        true => -leaves * (-share).ln_1p(),
        false => f64::INFINITY,
    };
    draws.min(most.max(distinct))
}

/// Returns how many documents of the whole match a query of which this many of the trial match, where the whole has
/// `documents` for each one of the trial. The query was drawn around `drawn` of them; of the others the trial has its share.
pub fn matching_of_whole(matching: f64, drawn: f64, documents: f64) -> f64 {
    let drawn = drawn.min(matching);
    drawn + (matching - drawn) * documents
}

/// Returns how many inner pages of a tree with this many leaves a query reads that reads this many of them, in a row or
/// scattered.
fn inner_pages(read: f64, leaves: f64, children: f64, in_a_row: bool) -> f64 {
    let (mut read, mut pages, mut inner) = (read, leaves, 0.0);
    loop {
        pages = (pages / children).ceil();
        if pages <= 1.0 || read <= 0.0 {
            return inner;
        }
        let hit = match in_a_row {
            true => 1.0 + (read - 1.0).max(0.0) / children,
            false => distinct(read, pages).max(1.0),
        };
        read = hit.min(pages);
        // One of them was read when the file was opened.
        inner += read * (1.0 - 1.0 / pages);
    }
}

/// What the whole collection has that the trial has not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Whole {
    /// Its documents for each one of the sample.
    pub documents: f64,
    /// Mean size of its pages without compression, bytes.
    pub page_bytes: f64,
    /// The same of the index that the query uses, where that is known.
    pub index_page_bytes: Option<f64>,
}

/// What a trial measured of one query, on average, and how much more there is of the whole.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Queries that were asked in a row after a cold start.
    pub queries: f64,
    /// Blocks of the collection that they read together.
    pub collection_blocks: f64,
    /// Size of these blocks as pages, which are no longer compressed.
    pub collection_bytes: f64,
    /// Blocks of the indexes that the first of them read.
    pub index_blocks: f64,
    /// Size of these blocks, bytes.
    pub index_bytes: f64,
    /// Keys on a leaf of the index that the queries use, in the trial, on average.
    pub leaf_keys: f64,
    /// Leaves of that index in the trial.
    pub index_leaves: f64,
    /// Documents that they read together.
    pub documents: f64,
    /// Keys of indexes that they read together.
    pub keys: f64,
    /// Leaves of the collection in the trial.
    pub leaves: f64,
    /// Mean size of their pages without compression, bytes.
    pub page_bytes: f64,
    pub whole: Whole,
    /// Documents that a query of the whole returns for each one that a query of the trial returned.
    pub more_returned: f64,
    /// Whether what a query returns lies within a stretch of the file, because it is of a stretch of time.
    pub local: bool,
    /// Whether documents are read in their order on disk for want of an index.
    pub collection_scan: bool,
    /// Share of the documents of the trial that such a scan reads: all, unless the query ends as soon as it has enough.
    pub scanned_share: f64,
    /// Documents of the trial that match a query that ends so; `None` if they are as dense in the whole as in the trial.
    pub matching: Option<f64>,
    /// Share of the queries of the whole that find something. Those of the trial all do.
    pub found_share: f64,
    /// Values of a list that a query of the trial asks for, each drawn from a document of its own; 1 without a list.
    pub values: f64,
    /// Values that a query of the whole asks for, for each one that one of the trial asks for: their keys lie apart.
    pub more_values: f64,
    /// Whether no document is read, because the index has all that is asked for.
    pub covered: bool,
}

impl Measured {
    /// Returns the blocks that one query reads of the whole collection, without those of its indexes.
    pub fn collection_blocks_of_whole(&self) -> f64 {
        if self.queries <= 0.0 {
            return 0.0;
        }
        let whole_leaves = self.leaves * self.whole.documents * self.fuller();
        if self.collection_scan {
            return whole_leaves * self.scanned_share_of_whole();
        }
        let hit = self.collection_blocks;
        let by_chance = distinct(self.documents, self.leaves);
        // Documents that lie further apart than by chance share no leaf in the whole either.
        let is_apart = hit > by_chance * (1.0 + BY_CHANCE);
        let documents = self.documents / self.queries;
        let collection = if self.local {
            let row = self.of_whole(hit, self.collection_bytes / self.page_bytes.max(1.0));
            self.longer(row, documents)
        } else if is_apart {
            let apart = self.of_whole(hit, hit);
            let more = self.longer(apart, documents) - apart;
            // What those of the trial kept clear of each other says nothing of many more.
            let untouched = (1.0 - apart / whole_leaves.max(1.0)).max(0.0);
            apart + more.min(0.0) + distinct(more, whole_leaves) * untouched
        } else {
            let all = match hit >= by_chance * (1.0 - FEWER_BY_CHANCE) {
                // How many of few leaves are hit hardly depends on the number of draws.
                true => self.documents,
                false => draws(hit, self.leaves, self.documents),
            };
            let all = self.longer(self.of_whole(all, all), documents);
            distinct(all, whole_leaves)
        };
        // More documents lie on the leaves that there are, and one that is read lies on one.
        let least = if self.covered { 0.0 } else { 1.0 };
        collection
            .min(whole_leaves.max(hit / self.queries))
            .max(least)
    }

    /// Returns the inner pages of the whole collection's tree that one query reads. Documents of which several lie on a leaf
    /// lie in a row.
    pub fn inner_blocks_of_collection(&self) -> f64 {
        if self.queries <= 0.0 {
            return 0.0;
        }
        let leaves = self.leaves * self.whole.documents * self.fuller();
        let read = self.collection_blocks_of_whole();
        let are_alone = self.collection_blocks >= self.documents * ALONE;
        let in_a_row = self.collection_scan || self.local || !are_alone;
        inner_pages(read, leaves, COLLECTION_CHILDREN, in_a_row)
    }

    /// Returns the inner pages of the tree of the whole index that one query reads.
    pub fn inner_blocks_of_index(&self) -> f64 {
        let read = self.index_blocks_of_whole();
        if read <= 0.0 {
            return 0.0;
        }
        let leaves = self.index_leaves_of_whole(self.index_blocks_as_full());
        let in_a_row = !self.leaps() && self.values <= 1.0 && self.more_values <= 1.0;
        inner_pages(read, leaves, INDEX_CHILDREN, in_a_row)
    }

    /// Returns the share of the whole that a scan reads. Where it ends early, in the trial or at least in the whole, it ends
    /// there after the share that fits how many more documents match, and later if it needs more. Who finds nothing reads
    /// all.
    fn scanned_share_of_whole(&self) -> f64 {
        if self.scanned_share >= ALL && self.matching.is_none() {
            return 1.0;
        }
        let until_found = self.scanned_share * self.more_returned.max(1.0) / self.more_matching();
        self.found_share * until_found.min(1.0) + (1.0 - self.found_share)
    }

    /// Returns how many times as short as in the trial the share is after which a scan of the whole has enough. Of `m`
    /// documents that match and lie anywhere, the first is met after the share `1 / (m + 1)`.
    fn more_matching(&self) -> f64 {
        let documents = self.whole.documents.max(1.0);
        match self.matching {
            Some(matching) => {
                let matching = matching.max(1.0);
                let of_whole = matching_of_whole(matching, self.values, documents);
                (of_whole + 1.0) / (matching + 1.0)
            }
            None => documents,
        }
    }

    /// Returns how many blocks are hit by as many more documents or keys as a query of the whole returns, where this
    /// many of them hit this many blocks: the first hits one in any case, and each further one its share of the others.
    fn longer(&self, blocks: f64, count: f64) -> f64 {
        let for_each = match count > 1.0 {
            true => ((blocks - 1.0) / (count - 1.0)).clamp(0.0, 1.0),
            false => 1.0,
        };
        let more = count * (self.more_returned - 1.0);
        (blocks + for_each * more).max(blocks.min(1.0))
    }

    /// Returns how many times as much as on a page of the whole is on one of the trial.
    fn fuller(&self) -> f64 {
        match self.whole.page_bytes > 0.0 && self.page_bytes > 0.0 {
            true => self.page_bytes / self.whole.page_bytes,
            false => 1.0,
        }
    }

    /// Returns the blocks that a query hits if its documents lie on pages as full as those of the whole, where those of
    /// all queries hit this many blocks, of this many mean ones.
    fn of_whole(&self, hit: f64, mean_blocks: f64) -> f64 {
        let documents = self.documents / self.queries;
        let (hit, mean_blocks) = (hit / self.queries, mean_blocks / self.queries);
        if hit >= documents * ALONE || mean_blocks <= 1.0 {
            return hit;
        }
        // The first of a row of neighbours takes a block, however full it is.
        (1.0 + (mean_blocks - 1.0) * self.fuller()).min(documents)
    }

    /// Returns the blocks of indexes that one query reads of the whole. Keys that a query reads beside those of its answer
    /// are more in the whole, unless it asks for a stretch of time, of which the sample has all. A query reads at
    /// least one leaf, and no more than the index has.
    pub fn index_blocks_of_whole(&self) -> f64 {
        if self.collection_scan || self.keys <= 0.0 || self.queries <= 0.0 {
            return 0.0;
        }
        let blocks = self.index_blocks_as_full();
        let keys = self.keys / self.queries;
        let most = self.index_leaves_of_whole(blocks);
        if self.leaps() {
            // The first leaf is read in any case, and the others lie further apart.
            let apart = (blocks - 1.0) * self.whole.documents;
            let leapt = (1.0 + apart).clamp(1.0, keys.max(1.0));
            return leapt.min(most);
        }
        let beside = self.beside();
        let grown = (self.keys - beside + beside * self.more_beside()) / self.keys;
        let (blocks, keys) = (blocks * grown, keys * grown);
        let all = if self.values > 1.0 || self.more_values > 1.0 {
            // Each value has a place of its own, where its keys follow one another.
            let more_of_each = (self.more_returned / self.more_values - 1.0).max(0.0);
            let of_each = (keys - self.behind()).max(0.0) * self.more_values;
            let following = of_each * more_of_each / self.leaf_keys.max(1.0);
            distinct(self.places(blocks).max(1.0) * self.more_values, most) + following
        } else if keys > 1.0 {
            self.longer(blocks, keys)
        } else {
            // One key does not show how the next ones lie: those of one value follow one another.
            blocks + keys * (self.more_returned - 1.0).max(0.0) / self.leaf_keys.max(1.0)
        };
        all.min(most).max(1.0)
    }

    /// Returns the places of the index at which a query of the trial looks for its values, where it read this many
    /// blocks: several may lie on one leaf by chance.
    fn places(&self, blocks: f64) -> f64 {
        if self.values <= 1.0 {
            return blocks;
        }
        let most = self.values.max(blocks);
        match self.index_leaves <= 1.0 {
            true => most,
            false => draws(blocks, self.index_leaves, most).min(most),
        }
    }

    /// Returns how many leaves the index of the whole has, where a query read this many of the trial's.
    fn index_leaves_of_whole(&self, read: f64) -> f64 {
        let fuller = match self.index_blocks > 0.0 {
            true => self.index_blocks_as_full() / self.index_blocks,
            false => 1.0,
        };
        let leaves = self.index_leaves.max(1.0) * self.whole.documents.max(1.0) * fuller;
        leaves.max(read).max(1.0)
    }

    /// Returns the blocks of the index that the first query would read if they were as full as those of the whole.
    fn index_blocks_as_full(&self) -> f64 {
        match self.whole.index_page_bytes {
            Some(page_bytes) if self.index_blocks > 1.0 && page_bytes > 0.0 => {
                let fuller = self.index_bytes / self.index_blocks / page_bytes;
                1.0 + (self.index_blocks - 1.0) * fuller
            }
            _ => self.index_blocks,
        }
    }

    /// Returns whether a query passes over most keys of the leaves that it reads.
    fn leaps(&self) -> bool {
        let passed = (self.index_blocks - 1.0) * self.leaf_keys;
        !self.local && self.beside() > 0.0 && self.keys / self.queries < passed * LEAPT
    }

    /// Returns the keys that are read beside those of the answer, of which there are more in the whole.
    fn beside(&self) -> f64 {
        match self.covered {
            true => 0.0,
            false => (self.keys - self.documents - self.behind() * self.queries).max(0.0),
        }
    }

    /// Returns the keys that a query reads because they stand behind those of a value of its list, one for each.
    fn behind(&self) -> f64 {
        match self.values > 1.0 {
            true => self.values,
            false => 0.0,
        }
    }

    /// Returns how many keys a query reads of the whole for each one beside its answer that it reads of the sample.
    fn more_beside(&self) -> f64 {
        match self.local || self.leaps() {
            true => 1.0,
            false => self.whole.documents,
        }
    }

    /// Returns how many times the time of a query of the trial, with everything cached, one of the whole takes: what it
    /// reads, it examines.
    pub fn more_work(&self) -> f64 {
        if self.collection_scan {
            let in_trial = self.scanned_share.max(f64::MIN_POSITIVE);
            return self.whole.documents * self.scanned_share_of_whole() / in_trial;
        }
        let beside = self.beside();
        let examined = self.keys.max(self.documents);
        match examined > 0.0 {
            true => {
                (examined - beside + beside * self.more_beside()) / examined
                    * self.more_returned.max(1.0)
            }
            false => 1.0,
        }
    }

    /// Returns the time of a query of the whole with everything cached, ns, where one of the trial takes `warm_ns` and one
    /// that finds nothing `least_ns`. `each_ns` is what a further document takes that an index leads to: what a query takes
    /// beside that it takes once, however much it returns. Where it is not known, all but `least_ns` grows.
    pub fn work_ns(&self, warm_ns: f64, least_ns: f64, each_ns: Option<f64>) -> f64 {
        let more = self.more_work();
        match each_ns.filter(|_| !self.collection_scan && self.queries > 0.0) {
            Some(each_ns) => {
                let examined = self.keys.max(self.documents) / self.queries;
                warm_ns + examined * (more - 1.0).max(0.0) * each_ns
            }
            None => least_ns + (warm_ns - least_ns) * more,
        }
    }
}

#[cfg(test)]
mod tests;
