//! Scans a collection ahead of the consumer of its documents.

use std::mem;

use bson::{Document, RawDocumentBuf, doc};
use mongodb::Collection;
use mongodb::options::Hint;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::checksum::Checksum;

/// The most bytes of a batch's documents; well below the 48 MB of a message, and small enough that the batches in
/// flight fit into memory together.
pub(crate) const BATCH_BYTES: usize = 12 << 20;
const BATCH_DOCUMENTS: usize = 10_000;
/// Batches that wait while one is written and the next is filled.
const BATCHES_AHEAD: usize = 1;

/// Documents in the order of the scan, with their hashes.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) documents: Vec<RawDocumentBuf>,
    pub(crate) hashes: Vec<u128>,
    pub(crate) bytes: usize,
}

/// The order of a scan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ScanOrder {
    Natural,
    /// The index with this name and these keys.
    Index(String, Document),
}

/// What is kept of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    Hashes,
    /// Documents, in batches of at most this many bytes.
    Documents {
        batch_bytes: usize,
    },
}

/// A task that reads; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Reader {
    batches: mpsc::Receiver<Result<Batch, mongodb::error::Error>>,
    task: JoinHandle<()>,
}

impl Reader {
    /// Begins to read. If only hashes are wanted, documents are not kept.
    pub(crate) fn start(
        collection: Collection<RawDocumentBuf>,
        order: ScanOrder,
        seed: u64,
        wanted: Wanted,
    ) -> Self {
        let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
        let task = tokio::spawn(async move {
            if let Err(error) = read(&collection, order, seed, wanted, &sender).await {
                // If sending fails, there is no receiver any more.
                let _ = sender.send(Err(error)).await;
            }
        });
        Self { batches, task }
    }

    /// Returns the next documents; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Batch>, mongodb::error::Error> {
        self.batches.recv().await.transpose()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn read(
    collection: &Collection<RawDocumentBuf>,
    order: ScanOrder,
    seed: u64,
    wanted: Wanted,
    sender: &mpsc::Sender<Result<Batch, mongodb::error::Error>>,
) -> Result<(), mongodb::error::Error> {
    let find = collection.find(doc! {}).no_cursor_timeout(true);
    let mut cursor = match order {
        ScanOrder::Natural => find.hint(Hint::Keys(doc! { "$natural": 1 })).await?,
        ScanOrder::Index(name, keys) => find.hint(Hint::Name(name)).sort(keys).await?,
    };
    let (keep, batch_bytes) = match wanted {
        Wanted::Hashes => (false, BATCH_BYTES),
        Wanted::Documents { batch_bytes } => (true, batch_bytes.min(BATCH_BYTES)),
    };
    let mut batch = Batch::default();
    while cursor.advance().await? {
        let document = cursor.current();
        let bytes = document.as_bytes().len();
        let full = batch.hashes.len() >= BATCH_DOCUMENTS || batch.bytes + bytes > batch_bytes;
        if full && !batch.hashes.is_empty() && sender.send(Ok(mem::take(&mut batch))).await.is_err()
        {
            return Ok(());
        }
        batch.hashes.push(Checksum::hash(seed, document.as_bytes()));
        batch.bytes += bytes;
        if keep {
            batch.documents.push(document.to_owned());
        }
    }
    if !batch.hashes.is_empty() {
        let _ = sender.send(Ok(batch)).await;
    }
    Ok(())
}
