//! A `.wt` file without its data directory. The whole file is read once, in order, to find what no
//! pointer leads to; the tree that is found is then walked like any other.

use std::path::Path;

use seekscope_wiredtiger::lone::{LoneError, LoneScan, LoneSearch, LoneSource, LoneTree};
use seekscope_wiredtiger::{Checkpoint, CheckpointCookie};

use crate::LayoutError;
use crate::data_file::DataFile;
use crate::gate::Gate;
use crate::page_cache::{Pages, WalkPages};
use crate::tree_reading::TreeReader;
use crate::walked_file::{TreeSource, WalkOptions, WalkedFile, walk_checkpoint};

/// Bytes read at once; also determines how soon a request to stop is noticed.
const CHUNK_BYTES: usize = 1 << 20;

/// Finds the newest complete tree of the file and walks it. Reads the whole file; a rate limit
/// counts each MiB of that as one read.
pub fn walk_lone(path: &Path, options: &WalkOptions<'_>) -> Result<WalkedFile, LayoutError> {
    let gate = Gate::new(options.stop, options.reads_per_s);
    let file = DataFile::open(path)?;
    let nothing = |source| LayoutError::NothingRecovered {
        path: path.into(),
        source,
    };
    let mut scan = Scan::default();
    let search = scan.read(&file, &gate, nothing)?;
    let pages = WalkPages::new(Pages::new(), 0);
    let mut reader = TreeReader::new(file, &gate, pages).in_parallel(options.parallel_reads);
    let trees = searched(search, &mut reader)?.map_err(nothing)?;
    let mut failure = None;
    for tree in trees {
        match walk_tree_found(&mut reader, tree) {
            Ok(mut walked) => {
                walked.reads = scan.reads + reader.reads;
                walked.bytes_read = scan.bytes_read + reader.bytes_read;
                return Ok(walked);
            }
            Err(LayoutError::Interrupted) => return Err(LayoutError::Interrupted),
            // Older trees may be complete where the newest is not; if none is, the newest one's
            // error is reported.
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let error = failure.unwrap_or_else(|| nothing(LoneError::NothingFound));
    Err(error.lasting(&path.to_string_lossy()))
}

/// The pass over the whole file, and what it cost.
#[derive(Default)]
struct Scan {
    reads: u64,
    bytes_read: u64,
}

impl Scan {
    fn read(
        &mut self,
        file: &DataFile,
        gate: &Gate<'_>,
        nothing: impl Fn(LoneError) -> LayoutError,
    ) -> Result<LoneSearch, LayoutError> {
        let mut scan = LoneScan::new(file.bytes()?);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            gate.pass()?;
            let length = file.read_some(&mut chunk, self.bytes_read)?;
            if length == 0 {
                return scan.finish().map_err(nothing);
            }
            self.reads += 1;
            self.bytes_read += length as u64;
            scan.feed(&chunk[..length]).map_err(&nothing)?;
        }
    }
}

/// Supplies a search with the blocks it wants; a block that cannot be read is not what it looked
/// like.
fn searched(
    mut search: LoneSearch,
    reader: &mut TreeReader<'_>,
) -> Result<Result<Vec<LoneTree>, LoneError>, LayoutError> {
    loop {
        let wanted = search.wanted().to_vec();
        if wanted.is_empty() {
            return Ok(search.finish());
        }
        for address in wanted {
            match reader.block(&address) {
                Ok(bytes) => search.supply(&address, &bytes),
                Err(LayoutError::ShortRead { .. }) => search.supply(&address, &[]),
                Err(error) => return Err(error),
            }
        }
    }
}

fn walk_tree_found(reader: &mut TreeReader<'_>, tree: LoneTree) -> Result<WalkedFile, LayoutError> {
    let (source, cookie) = match tree.source {
        LoneSource::Checkpoint { cookie, .. } => {
            let avail = tree.avail;
            (
                TreeSource::OwnDescription,
                CheckpointCookie { avail, ..cookie },
            )
        }
        LoneSource::Orphan => {
            let cookie = CheckpointCookie {
                root: tree.root,
                alloc: None,
                avail: tree.avail,
                discard: None,
                file_bytes: tree.file_bytes,
                checkpoint_bytes: 0,
            };
            (TreeSource::Orphan, cookie)
        }
    };
    let checkpoint = Checkpoint {
        name: String::new(),
        order: 0,
        time_s: 0,
        write_generation: tree.write_generation,
        cookie: Some(cookie),
    };
    let mut walked = walk_checkpoint(reader, tree.format, Some(checkpoint))?;
    walked.source = source;
    Ok(walked)
}
