//! Copies all documents: reads them in the wanted order and writes them with one writer, because the fewer
//! write at a time, the better the order on disk. Reading and writing overlap.

use std::time::{Duration, Instant};

use bson::RawDocumentBuf;
use mongodb::Collection;
use mongodb::error::{Error, ErrorKind};

use crate::checkpoints::Checkpoints;
use crate::checksum::Checksum;
use crate::guard::Guard;
use crate::reader::{Batch, Reader, ScanOrder, Wanted};
use crate::site::Site;
use crate::state::is_duplicate;
use crate::{Progress, ReorderError};

/// Lower limit of the rate: a cursor that is not read for half an hour is closed by the server.
const RATE_MIN_BYTES_PER_S: u64 = 1 << 20;

/// How the original is read.
pub(crate) struct Reading {
    pub(crate) order: ScanOrder,
    /// Whether changes are brought over afterwards.
    pub(crate) is_followed: bool,
    /// Seed of the documents' sums.
    pub(crate) seed: u64,
    pub(crate) max_rate_bytes_per_s: Option<u64>,
}

/// Copies the original. The result counts each document that was written.
pub(crate) async fn copy(
    site: &Site,
    reading: Reading,
    guard: &mut Guard,
    checkpoints: &mut Checkpoints,
    progress: &dyn Progress,
) -> Result<Checksum, ReorderError> {
    let Reading {
        order,
        is_followed,
        seed,
        max_rate_bytes_per_s,
    } = reading;
    // A document whose key grows while the index is read appears again, under the same _id, and so does one that is
    // deleted and inserted anew. Which of them is right comes with the changes.
    let twice = is_followed || matches!(order, ScanOrder::Index(..));
    let expected = site.count(site.target_name()).await?;
    let wanted = Wanted::Documents {
        batch_bytes: checkpoints.batch_bytes(),
    };
    let mut reader = Reader::start(site.target(), order, seed, wanted);
    let mut pace = Pace::new(max_rate_bytes_per_s);
    let mut sum = Checksum::new(seed);
    let failed = |error| site.failed("find", &error);
    while let Some(batch) = reader.next().await.map_err(failed)? {
        guard.wait(progress).await;
        pace.wait(batch.bytes).await;
        write(site, &batch, twice, &mut sum).await?;
        checkpoints.written(batch.bytes).await;
        progress.copied(sum.documents, sum.bytes, expected);
    }
    Ok(sum)
}

async fn write(
    site: &Site,
    batch: &Batch,
    twice: bool,
    sum: &mut Checksum,
) -> Result<(), ReorderError> {
    let written = insert(site, &site.copy(), &batch.documents).await;
    let refused = match written {
        Ok(()) => Vec::new(),
        Err(error) if twice && is_duplicate(&error) => failed_indexes(&error),
        Err(error) => return Err(site.not_written("insert", &error)),
    };
    for (i, (document, hash)) in batch.documents.iter().zip(&batch.hashes).enumerate() {
        if !refused.contains(&i) {
            sum.add(*hash, document.as_bytes().len());
        }
    }
    Ok(())
}

/// Inserts documents into the copy, unchanged. Unordered: one that the server rejects does not keep others
/// out.
pub(crate) async fn insert(
    site: &Site,
    copy: &Collection<RawDocumentBuf>,
    documents: &[RawDocumentBuf],
) -> Result<(), Error> {
    let insert = copy.insert_many(documents).ordered(false);
    let insert = insert.bypass_document_validation(site.has_validator);
    insert.await.map(|_| ())
}

/// Returns the positions of the documents of an insert that the server rejected.
pub(crate) fn failed_indexes(error: &Error) -> Vec<usize> {
    match error.kind.as_ref() {
        ErrorKind::InsertMany(e) => {
            let errors = e.write_errors.iter().flatten();
            errors.map(|e| e.index).collect()
        }
        _ => Vec::new(),
    }
}

/// Verifies the copy by reading it: it must hold what was read from the original, each document once. Nobody
/// else writes to it, and it is in order, so this is quick.
pub(crate) async fn verify(
    site: &Site,
    expected: &Checksum,
    guard: &mut Guard,
    progress: &dyn Progress,
) -> Result<(), ReorderError> {
    let found = scan(site, site.copy(), expected, guard, progress).await?;
    if found == *expected {
        return Ok(());
    }
    Err(site.aborted(format!(
        "the copy differs from what was read: {} documents of {} bytes and sum {:032x} instead of {} \
         of {} bytes and sum {:032x}; servers replace empty timestamps, Timestamp(0, 0), when they \
         insert, which may be why",
        found.documents, found.bytes, found.sum, expected.documents, expected.bytes, expected.sum
    )))
}

/// Reads the original once more: nobody may have written to it.
pub(crate) async fn read_again(
    site: &Site,
    expected: &Checksum,
    guard: &mut Guard,
    progress: &dyn Progress,
) -> Result<bool, ReorderError> {
    let found = scan(site, site.target(), expected, guard, progress).await?;
    Ok(found == *expected)
}

async fn scan(
    site: &Site,
    collection: Collection<RawDocumentBuf>,
    expected: &Checksum,
    guard: &mut Guard,
    progress: &dyn Progress,
) -> Result<Checksum, ReorderError> {
    let mut found = Checksum::new(expected.seed);
    let mut reader = Reader::start(
        collection,
        ScanOrder::Natural,
        expected.seed,
        Wanted::Hashes,
    );
    let failed = |error| site.failed("find", &error);
    while let Some(batch) = reader.next().await.map_err(failed)? {
        guard.wait(progress).await;
        found.add_batch(&batch.hashes, batch.bytes);
        progress.verified(found.documents, expected.documents);
    }
    Ok(found)
}

/// Throttles to keep an average rate.
#[derive(Debug)]
struct Pace {
    bytes_per_s: Option<u64>,
    free_at: Instant,
}

impl Pace {
    fn new(bytes_per_s: Option<u64>) -> Self {
        Self {
            bytes_per_s: bytes_per_s.map(|rate| rate.max(RATE_MIN_BYTES_PER_S)),
            free_at: Instant::now(),
        }
    }

    /// Waits until the time for the preceding bytes has passed.
    async fn wait(&mut self, bytes: usize) {
        let Some(rate) = self.bytes_per_s else {
            return;
        };
        let now = Instant::now();
        // Idle time does not allow a burst later.
        let start = self.free_at.max(now);
        self.free_at = start + Duration::from_secs_f64(bytes as f64 / rate as f64);
        tokio::time::sleep(start - now).await;
    }
}
