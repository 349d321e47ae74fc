//! Everything that is examined before the scan begins: the tree, the file, the disk. The kernel
//! takes some tenths of a second to load the tracer's programs, so the tracer is attached while the
//! disk is tried, and need not be ready. Where reading ahead cannot help, neither is done, because
//! both would hold up the scan.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use seekscope_layout::DataDirectory;
use seekscope_layout::order::{WINDOW_BYTES, scan_order};
use seekscope_layout::scan_prediction::engine_ns_per_byte;
use seekscope_run::page_cache::resident_pages;
use seekscope_run::{
    DeviceModel, Limitation, PrefetchRecord, ScanOrder, has_open_directly, monotonic_ns,
};
use seekscope_wiredtiger::Leaf;

use crate::PrefetchError;
use crate::alone::ScanAlone;
use crate::attaching::{Attaching, not_followed};
use crate::costs::{DiskCosts, SEARCH_TIME, Source, measure_stream};
use crate::memory::spare_memory_bytes;
use crate::pace::Pace;
use crate::reading::ReadCounts;
use crate::request_size::request_bytes;
use crate::stretch_reader::StretchReader;
use crate::sweep::{Next, Place, Sweep};
use crate::tree_watch::walk_options;

/// Memory assumed where the kernel does not say what there is.
const MEMORY_BYTES: u64 = 256 << 20;
/// Leaves used to try the disk.
const TRIAL_LEAVES: usize = 512;
/// Reads of the server of more than this share of ours, while the disk is tried, make each take longer than alone.
const BESIDE_SHARE: f64 = 0.1;
/// Share of the file in memory from which on there is nothing to read ahead.
const CACHED_SHARE: f64 = 0.9;

/// What to read ahead, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// The data directory.
    pub directory: PathBuf,
    /// The file, in a form that [`DataDirectory::find`] accepts, and what the user called it.
    pub table: String,
    pub named: String,
    /// The server, if it runs on this host.
    pub pid: Option<u32>,
    /// Memory for what is read ahead, bytes; `None`: half of what can be spared.
    pub window_bytes: Option<u64>,
    /// The disk, measured or typical; `None`: the disk is tried.
    pub model: Option<DeviceModel>,
    pub disk_measured: bool,
    /// Reads in flight; `None`: what suits the disk.
    pub depth: Option<u32>,
    /// Follow the server's reads with the tracer.
    pub trace: bool,
    /// Give way to other reads of the server.
    pub guard: bool,
    /// Pause now and then to measure what reading ahead gains, and end it if that is nothing.
    pub measure_gain: bool,
}

/// Everything needed to begin reading ahead.
pub struct Prefetch {
    pub(crate) request: Request,
    pub(crate) directory: DataDirectory,
    pub(crate) checkpoint: Option<u64>,
    pub(crate) file: Arc<File>,
    pub(crate) path: PathBuf,
    pub(crate) sweep: Sweep,
    pub(crate) costs: DiskCosts,
    /// Whether the costs are known; otherwise they are a guess.
    pub(crate) is_calibrated: bool,
    /// Bytes that the disk takes in one request.
    pub(crate) request_bytes: usize,
    pub(crate) pace: Pace,
    /// What it would be without us.
    pub(crate) alone: ScanAlone,
    /// The attaching of the tracer to the server; `None` if that is not wanted.
    pub(crate) attaching: Option<Attaching>,
    /// When preparation began, CLOCK_MONOTONIC ns.
    pub(crate) began_ns: u64,
    /// Reads made to try the disk.
    pub(crate) counts: ReadCounts,
    /// The record, which is filled in further during the run.
    pub record: PrefetchRecord,
    /// What cannot be done, why, and what grants it.
    pub limitations: Vec<Limitation>,
}

impl Prefetch {
    /// Examines everything. Reads the internal pages of the tree and, unless there is a device
    /// model, some dozens of leaves, on a slow disk more.
    ///
    /// # Errors
    /// When the data directory or the file cannot be read. Lack of permission to trace is not an
    /// error.
    pub fn prepare(request: Request, stop: &AtomicBool) -> Result<Self, PrefetchError> {
        let began_ns = monotonic_ns();
        let directory = DataDirectory::open(&request.directory, stop)?;
        let table = directory.find(&request.table)?;
        let path = directory.path().join(&table.file);
        let file = Arc::new(directory.open_table(table)?);
        let mut prefetch = Self::look(request, directory, file, stop)?;
        if prefetch.helps() {
            let attaching = attach(&prefetch.request, &path, &prefetch.file)?;
            prefetch.look_at_disk()?;
            prefetch.follow(attaching);
        }
        prefetch.record.preparation_ns = monotonic_ns() - began_ns;
        prefetch.began_ns = began_ns;
        Ok(prefetch)
    }

    /// Examines tree and file.
    fn look(
        request: Request,
        directory: DataDirectory,
        file: Arc<File>,
        stop: &AtomicBool,
    ) -> Result<Self, PrefetchError> {
        let table = directory.find(&request.table)?;
        let (name, path) = (table.file.clone(), directory.path().join(&table.file));
        let document_bytes = table.document_bytes;
        let walked = directory.walk(table, &walk_options(stop))?;
        let request_bytes = request_bytes(Path::new("/"), &path);
        let request_bytes = usize::try_from(request_bytes).unwrap_or(usize::MAX);
        let window = request.window_bytes;
        let window = window.or_else(|| spare_memory_bytes(Path::new("/")));
        let sweep = Sweep::new(&walked.tree.leaves, window.unwrap_or(MEMORY_BYTES));
        let sweep = sweep.ok_or_else(|| PrefetchError::TooManyLeaves { file: name.clone() })?;
        let record = PrefetchRecord {
            named: request.named.clone(),
            path: path.display().to_string(),
            leaf_pages: sweep.leaves().len() as u64,
            leaf_bytes: sweep.leaf_bytes(),
            file_bytes: walked.file_bytes,
            file: name,
            ..PrefetchRecord::default()
        };
        let reader_ns_per_byte =
            engine_ns_per_byte(walked.compressor, document_bytes, record.leaf_bytes);
        let alone = ScanAlone {
            leaves: walked.tree.leaves,
            file_bytes: walked.file_bytes,
            reader_ns_per_byte,
            memory_bytes: sweep.memory_bytes(),
            read_ahead_bytes: ScanAlone::read_ahead_bytes(&path),
            measured: request.model.clone(),
            server: request.pid,
        };
        let mut prefetch = Self {
            checkpoint: walked
                .checkpoint
                .as_ref()
                .map(|checkpoint| checkpoint.order),
            costs: DiskCosts::unknown(),
            is_calibrated: true,
            request_bytes,
            directory,
            file,
            path,
            sweep,
            pace: Pace::own(reader_ns_per_byte),
            alone,
            attaching: None,
            began_ns: monotonic_ns(),
            counts: ReadCounts::default(),
            record,
            limitations: Vec::new(),
            request,
        };
        prefetch.look_at_file()?;
        Ok(prefetch)
    }

    /// Chooses the best way to follow the scan until it is traced.
    fn follow(&mut self, attaching: Option<Attaching>) {
        if let Some(counted) = self.request.pid.and_then(Pace::counted) {
            self.pace = counted;
        } else if attaching.is_none() {
            self.limitations.push(not_followed());
        }
        self.record.pace = self.pace.kind();
        self.attaching = attaching;
    }

    /// Decides whether reading ahead can help.
    fn look_at_file(&mut self) -> Result<(), PrefetchError> {
        let reader = StretchReader::new(Arc::clone(&self.file), self.request_bytes);
        if !reader.sees_residency() {
            self.limitations.push(Limitation {
                what: "which pages are in memory is not known: nothing that was read is given back, and whether \
                       the scan is faster for it is not measured"
                    .into(),
                why: "the kernel tells only the owner of a file, and those who may write it (mincore)".into(),
                remedy: "run as root or as the server's user".into(),
            });
        } else {
            let cached =
                cached_bytes(&self.file, &self.alone.leaves).map_err(|e| self.failed(e))?;
            self.record.cached_bytes_before = cached;
            let share = cached as f64 / self.record.leaf_bytes.max(1) as f64;
            if share > CACHED_SHARE {
                self.record.cannot_help.push(format!(
                    "{:.0} % of the leaves are in memory already",
                    share * 100.0
                ));
            }
        }
        let order = scan_order(&self.alone.leaves, WINDOW_BYTES);
        if let Some(order) = order.filter(ScanOrder::is_in_order) {
            self.record.cannot_help.push(format!(
                "the leaves lie in the order of the scan ({:.0} % of the steps), so the kernel's own read-ahead \
                 brings them",
                order.sequential_share * 100.0
            ));
        }
        if self.record.leaf_pages == 0 {
            let why = "the file has no rows as of its newest checkpoint";
            self.record.cannot_help.push(why.into());
        }
        if self
            .request
            .pid
            .is_some_and(|pid| has_open_directly(pid, &self.path))
        {
            let why =
                "the server has the file open with O_DIRECT, so it does not ask the page cache";
            self.record.cannot_help.push(why.into());
        }
        Ok(())
    }

    fn look_at_disk(&mut self) -> Result<(), PrefetchError> {
        let of_model = self.request.model.as_ref().and_then(DiskCosts::of_model);
        self.costs = match of_model {
            Some(costs) => costs.of_source(match self.request.disk_measured {
                true => Source::Measured,
                false => Source::Typical,
            }),
            None => {
                let before = self.alone.server_read_bytes();
                let costs = self.try_disk().map_err(|e| self.failed(e))?;
                let others = self.alone.server_read_bytes().zip(before);
                let others = others.map_or(0, |(after, before)| after.saturating_sub(before));
                self.record.tried_beside_reads =
                    others as f64 > BESIDE_SHARE * self.sweep.held_bytes() as f64;
                costs
            }
        };
        if let Some(depth) = self.request.depth {
            self.costs.depth = depth.max(1);
        }
        match self.is_calibrated {
            true => self.costs.note_in(&mut self.record),
            // None of the costs from the few sequential reads may remain in the end.
            false => self.record.depth = self.costs.depth,
        }
        Ok(())
    }

    /// Tries the disk by reading what the scan will need.
    fn try_disk(&mut self) -> io::Result<DiskCosts> {
        let (file, bytes) = (Arc::clone(&self.file), self.request_bytes);
        let make_reader = || StretchReader::new(Arc::clone(&file), bytes);
        let window = self.sweep.window();
        let count = window.len().min(TRIAL_LEAVES);
        let leaves: Vec<Place> = self.sweep.leaves()[window][..count].to_vec();
        let (costs, ours) = DiskCosts::measure(&make_reader, &leaves)?;
        self.sweep.hold(&ours);
        if !costs.are_slow() {
            self.is_calibrated = false;
            return Ok(costs);
        }
        let (sweep, counts, mut reader) = (&mut self.sweep, &mut self.counts, make_reader());
        let file_bytes = reader.file_bytes()?;
        let (mut failure, mut beyond) = (None, 0);
        let rate = measure_stream(bytes as u64, SEARCH_TIME, &mut |joining| {
            let read = match sweep.next(joining) {
                Next::Read(stretch) => {
                    beyond = stretch.range().end;
                    let read = reader.read(&stretch);
                    read.inspect(|read| {
                        sweep.done(&stretch, &read.ours);
                        counts.add(&stretch, read);
                    })
                    .inspect_err(|_| sweep.failed(&stretch))
                }
                // A small window is full before the disk's credit is spent.
                Next::Full | Next::Nothing => {
                    let from = beyond;
                    beyond += joining.stretch_bytes;
                    reader.pass_over(from, joining.stretch_bytes)
                }
            };
            match read {
                Ok(read) => (beyond < file_bytes).then(|| read.fetched()),
                Err(error) => {
                    failure = Some(error);
                    None
                }
            }
        });
        self.counts.note_in(&mut self.record);
        if let Some(error) = failure {
            return Err(error);
        }
        Ok(costs.with_rate(rate, self.sweep.mean_leaf_bytes()))
    }

    /// Returns whether reading ahead can help, as far as is known before the scan begins.
    pub(crate) fn helps(&self) -> bool {
        self.record.cannot_help.is_empty()
    }

    /// Returns whether the tracer will follow the scan, if permitted.
    pub fn is_attaching(&self) -> bool {
        self.attaching.is_some()
    }

    /// Returns whether the disk is not known yet and is tried while the scan begins.
    pub fn tries_disk_meanwhile(&self) -> bool {
        !self.is_calibrated
    }

    pub(crate) fn failed(&self, source: io::Error) -> PrefetchError {
        PrefetchError::Read {
            path: self.path.clone(),
            source,
        }
    }
}

/// Begins to trace the server, if wanted.
fn attach(
    request: &Request,
    path: &Path,
    file: &Arc<File>,
) -> Result<Option<Attaching>, PrefetchError> {
    let Some(pid) = request.pid.filter(|_| request.trace) else {
        return Ok(None);
    };
    Attaching::begin(pid, path.to_owned(), Arc::clone(file)).map(Some)
}

/// Returns how many bytes of these leaves are in memory now.
fn cached_bytes(file: &File, leaves: &[Leaf]) -> io::Result<u64> {
    /// The most of a file that is mapped for mincore at a time.
    const SPAN_BYTES: u64 = 256 << 20;
    let page_bytes = rustix::param::page_size() as u64;
    let file_bytes = file.metadata()?.len();
    let mut places: Vec<(u64, u64)> = leaves
        .iter()
        .map(|leaf| (leaf.offset, leaf.offset.saturating_add(leaf.length.into())))
        .collect();
    places.sort_unstable();
    let (mut start, mut pages) = (0, Vec::new());
    let mut cached = 0;
    for (from, to) in places {
        for page in from / page_bytes..to.min(file_bytes).div_ceil(page_bytes) {
            let offset = page * page_bytes;
            if pages.is_empty() || offset >= start + SPAN_BYTES {
                start = offset;
                pages = resident_pages(file, start, SPAN_BYTES.min(file_bytes - start))?;
            }
            let index = usize::try_from((offset - start) / page_bytes).unwrap_or(usize::MAX);
            cached += u64::from(pages.get(index) == Some(&true)) * page_bytes;
        }
    }
    Ok(cached)
}
