//! Performs the run: reads, updates, inserts, scans and read-modify-writes, drawn by their proportions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bson::RawDocument;
use seekscope_client::{
    Actor, ActorPlace, BsonWriter, Failure, Operation, OperationId, Reply, Request, Verdict,
    Workload, request::Verb,
};
use seekscope_stats::SplitMix64;

use super::chooser::{Chooser, Population};
use super::rows::CheckBuffers;
use super::{ClientSlice, Edition, Rows, YcsbError, YcsbSettings};
use crate::generators::{Weighted, stream_seed};

/// The kinds of transaction; in the order of YCSB's choice and of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

const KINDS: [Kind; 5] = [
    Kind::Read,
    Kind::Update,
    Kind::Insert,
    Kind::Scan,
    Kind::ReadModifyWrite,
];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "READ",
            Self::Update => "UPDATE",
            Self::Insert => "INSERT",
            Self::Scan => "SCAN",
            Self::ReadModifyWrite => "READ-MODIFY-WRITE",
        }
    }
}

/// The run phase of a workload; clones share their counters.
#[derive(Debug, Clone)]
pub struct YcsbRun(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: YcsbSettings,
    slice: ClientSlice,
    operations: Vec<Operation>,
    /// The index of each kind in `operations`.
    ids: [OperationId; 5],
    choice: Weighted<Kind>,
    rows: Rows,
    population: Population,
    inserted: AtomicU64,
    /// Initial state of every virtual user's chooser.
    chooser: Chooser,
}

impl YcsbRun {
    /// Creates the run; `slice`: which of several clients this is, which determines the keys of inserts and
    /// the random draws.
    pub fn new(settings: YcsbSettings, slice: ClientSlice) -> Result<Self, YcsbError> {
        let weights: [(Kind, f64); 5] =
            std::array::from_fn(|at| (KINDS[at], settings.proportions[at]));
        let choice = Weighted::new(&weights).ok_or_else(|| {
            let why = "at least one of the proportions must be above 0";
            YcsbError::value("readproportion", settings.proportions[0], why)
        })?;
        let drawn: Vec<Kind> = choice.choices().collect();
        let has_pairs = drawn.contains(&Kind::ReadModifyWrite);
        let (mut operations, mut ids) = (Vec::new(), [0; 5]);
        for (kind, id) in KINDS.into_iter().zip(&mut ids) {
            let is_part = has_pairs && matches!(kind, Kind::Read | Kind::Update);
            if is_part || drawn.contains(&kind) {
                *id = OperationId::try_from(operations.len()).unwrap_or(OperationId::MAX);
                operations.push(Operation {
                    name: kind.name().into(),
                    is_transaction: kind == Kind::ReadModifyWrite,
                });
            }
        }
        let population = Population::new(&settings, slice);
        Ok(Self(Arc::new(Shared {
            rows: Rows::new(&settings),
            chooser: Chooser::new(&settings, &population),
            settings,
            slice,
            operations,
            ids,
            choice,
            population,
            inserted: AtomicU64::new(0),
        })))
    }

    pub fn settings(&self) -> &YcsbSettings {
        &self.0.settings
    }

    pub fn rows(&self) -> &Rows {
        &self.0.rows
    }

    /// Returns the number of inserts that the server acknowledged.
    pub fn inserted(&self) -> u64 {
        self.0.inserted.load(Ordering::Relaxed)
    }

    /// Returns the number of inserts that were begun, whatever their outcome.
    pub fn handed_out(&self) -> u64 {
        self.0.population.inserts.claimed()
    }

    /// Returns the record of an insert, if all up to it have ended and it was acknowledged. In the `ycsb`
    /// edition it is unknown which inserts failed, so it may be missing there after all.
    pub fn inserted_record(&self, ordinal: u64) -> Option<u64> {
        let Shared { population, .. } = &*self.0;
        let is_there =
            ordinal < population.inserts.done_below() && !population.inserts.has_failed(ordinal);
        is_there.then(|| population.inserted(ordinal))
    }

    /// Returns whether this is the only client.
    pub fn is_alone(&self) -> bool {
        self.0.slice.count == 1
    }

    /// Returns the greatest record that this client tried to insert, acknowledged or not. A later run on the
    /// same data must begin beyond it (`firstinsert`), or its inserts find their keys taken.
    pub fn highest_inserted(&self) -> Option<u64> {
        let population = &self.0.population;
        let last = population.inserts.claimed().checked_sub(1)?;
        Some(population.inserted(last))
    }
}

impl Workload for YcsbRun {
    fn operations(&self) -> &[Operation] {
        &self.0.operations
    }

    fn actor(&self, place: ActorPlace) -> Box<dyn Actor> {
        let shared = Arc::clone(&self.0);
        let seed = [shared.settings.seed, shared.slice.index, place.index as u64];
        Box::new(Runner {
            random: SplitMix64::new(stream_seed(&seed)),
            chooser: shared.chooser.clone(),
            shared,
            kind: Kind::Read,
            sent: 0,
            key: String::new(),
            record: 0,
            ordinal: 0,
            field: 0,
            revision: 0,
            scan_length: 0,
            document: BsonWriter::default(),
            room: CheckBuffers::default(),
        })
    }
}

struct Runner {
    shared: Arc<Shared>,
    random: SplitMix64,
    chooser: Chooser,
    // The current transaction.
    kind: Kind,
    /// Number of its requests that were sent.
    sent: u8,
    key: String,
    record: u64,
    /// Ordinal of an insert.
    ordinal: u64,
    /// The field that is read or written, if only one is.
    field: usize,
    /// Revision of the values that are written.
    revision: u64,
    scan_length: usize,
    /// Buffers that are reused.
    document: BsonWriter,
    room: CheckBuffers,
}

impl Actor for Runner {
    fn begin(&mut self) -> Option<OperationId> {
        let shared = &*self.shared;
        self.kind = shared.choice.draw(&mut self.random);
        self.sent = 0;
        if self.kind == Kind::Insert {
            self.ordinal = shared.population.inserts.claim()?;
            self.record = shared.population.inserted(self.ordinal);
        } else {
            self.record = self.chooser.draw(&shared.population, &mut self.random);
            let fields = shared.settings.field_names.len() as u64;
            self.field = usize::try_from(self.random.below(fields)).unwrap_or(0);
            self.revision = shared.rows.revision(self.random.next_u64());
        }
        if self.kind == Kind::Scan {
            self.scan_length = shared.settings.scan_lengths.draw(&mut self.random);
        }
        shared.rows.key(self.record, &mut self.key);
        Some(shared.id(self.kind))
    }

    fn request(&mut self, request: &mut Request) -> Option<OperationId> {
        let part = self.part()?;
        self.sent += 1;
        match part {
            Kind::Read => self.read(request),
            Kind::Update | Kind::ReadModifyWrite => self.update(request),
            Kind::Insert => self.insert(request),
            Kind::Scan => self.scan(request),
        }
        Some(self.shared.id(part))
    }

    fn reply(&mut self, outcome: Result<&Reply<'_>, &Failure>) -> Verdict {
        let ours = self.shared.settings.edition == Edition::Corrected;
        match self.kind {
            Kind::Insert => self.inserted(outcome),
            Kind::Scan => match outcome {
                Ok(reply) if reply.returned > 0 => Verdict::Good,
                Ok(_) if ours => Verdict::Bad("NOT_FOUND"),
                _ => Verdict::Bad("ERROR"),
            },
            Kind::Update => written(outcome),
            Kind::Read => self.has_read(outcome),
            Kind::ReadModifyWrite if self.sent == 1 => {
                let verdict = self.has_read(outcome);
                if !ours {
                    return verdict;
                }
                match verdict {
                    Verdict::Good => self.take_over(outcome.ok().and_then(|reply| reply.first)),
                    Verdict::Bad(name) | Verdict::Abort(name) => Verdict::Abort(name),
                }
            }
            Kind::ReadModifyWrite => written(outcome),
        }
    }
}

impl Shared {
    fn id(&self, kind: Kind) -> OperationId {
        let [read, update, insert, scan, pair] = self.ids;
        match kind {
            Kind::Read => read,
            Kind::Update => update,
            Kind::Insert => insert,
            Kind::Scan => scan,
            Kind::ReadModifyWrite => pair,
        }
    }
}

impl Runner {
    /// Returns the kind that the transaction's next request counts as.
    fn part(&self) -> Option<Kind> {
        match (self.kind, self.sent) {
            (Kind::ReadModifyWrite, 0) => Some(Kind::Read),
            (Kind::ReadModifyWrite, 1) => Some(Kind::Update),
            (kind, 0) => Some(kind),
            _ => None,
        }
    }

    fn read(&self, request: &mut Request) {
        let settings = &self.shared.settings;
        request.verb = Verb::Find;
        request.body.begin().string("find", &settings.table);
        request.body.begin_document("filter");
        request.body.string("_id", &self.key).end();
        let by_name = settings.read_by_name || settings.check_reads;
        self.projection(by_name, &mut request.body);
        request.body.int32("limit", 1).boolean("singleBatch", true);
        request.body.end();
    }

    fn projection(&self, by_name: bool, body: &mut BsonWriter) {
        let settings = &self.shared.settings;
        let fields = match (settings.read_all_fields, by_name) {
            (false, _) => &settings.field_names[self.field..=self.field],
            (true, true) => &settings.field_names,
            (true, false) => return,
        };
        body.begin_document("projection");
        for name in fields {
            body.int32(name, 1);
        }
        body.end();
    }

    fn scan(&self, request: &mut Request) {
        let settings = &self.shared.settings;
        let limit = i32::try_from(self.scan_length).unwrap_or(i32::MAX);
        request.verb = Verb::Find;
        request.body.begin().string("find", &settings.table);
        request.body.begin_document("filter").begin_document("_id");
        request.body.string("$gte", &self.key).end().end();
        request.body.begin_document("sort").int32("_id", 1).end();
        self.projection(false, &mut request.body);
        request.body.int32("limit", limit).end();
    }

    fn update(&self, request: &mut Request) {
        let Shared { settings, rows, .. } = &*self.shared;
        request.verb = Verb::Update;
        request.body.begin().string("update", &settings.table);
        request.body.boolean("ordered", true).end();
        let statement = &mut request.statements;
        statement.begin().begin_document("q");
        statement.string("_id", &self.key).end();
        statement.begin_document("u").begin_document("$set");
        if settings.write_all_fields {
            rows.all_fields(self.record, &self.key, self.revision, statement);
        } else {
            rows.field(self.record, &self.key, self.field, self.revision, statement);
        }
        statement.end().end().end();
        request.statement_count = 1;
    }

    fn insert(&mut self, request: &mut Request) {
        let Shared { settings, rows, .. } = &*self.shared;
        let name = if settings.upsert { "update" } else { "insert" };
        request.body.begin().string(name, &settings.table);
        request.body.boolean("ordered", true).end();
        request.statement_count = 1;
        if settings.upsert {
            request.verb = Verb::Update;
            self.document.clear();
            rows.document(self.record, &self.key, &mut self.document);
            replacement(&self.key, self.document.bytes(), &mut request.statements);
        } else {
            request.verb = Verb::Insert;
            rows.document(self.record, &self.key, &mut request.statements);
        }
    }

    fn inserted(&self, outcome: Result<&Reply<'_>, &Failure>) -> Verdict {
        let is_done = outcome.is_ok_and(|reply| reply.matched == 1);
        self.shared
            .inserted
            .fetch_add(u64::from(is_done), Ordering::Relaxed);
        let inserts = &self.shared.population.inserts;
        if is_done || self.shared.settings.edition == Edition::Ycsb {
            inserts.acknowledge(self.ordinal);
        } else {
            inserts.fail(self.ordinal);
        }
        if is_done {
            Verdict::Good
        } else {
            Verdict::Bad("ERROR")
        }
    }

    fn has_read(&mut self, outcome: Result<&Reply<'_>, &Failure>) -> Verdict {
        let Ok(reply) = outcome else {
            return Verdict::Bad("ERROR");
        };
        if reply.returned == 0 {
            return Verdict::Bad("NOT_FOUND");
        }
        let Shared { settings, rows, .. } = &*self.shared;
        if settings.check_reads {
            let expected = if settings.read_all_fields {
                settings.field_names.len()
            } else {
                1
            };
            let found = reply
                .first
                .and_then(|first| rows.is_part_of_row(self.record, first, &mut self.room));
            if found != Some(expected) {
                return Verdict::Bad("VERIFY");
            }
        }
        Verdict::Good
    }

    /// Makes the write the successor of what was read.
    fn take_over(&mut self, document: Option<&RawDocument>) -> Verdict {
        let rows = &self.shared.rows;
        match document.and_then(|document| rows.next_revision(self.record, document, self.field)) {
            Some(revision) => {
                self.revision = revision;
                Verdict::Good
            }
            None => Verdict::Abort("VERIFY"),
        }
    }
}

fn written(outcome: Result<&Reply<'_>, &Failure>) -> Verdict {
    match outcome {
        Ok(reply) if reply.matched == 1 => Verdict::Good,
        Ok(_) => Verdict::Bad("NOT_FOUND"),
        Err(_) => Verdict::Bad("ERROR"),
    }
}

/// Writes the statement that replaces a row, or inserts it.
pub(super) fn replacement(key: &str, document: &[u8], out: &mut BsonWriter) {
    out.begin().begin_document("q").string("_id", key).end();
    out.document("u", document).boolean("upsert", true).end();
}
