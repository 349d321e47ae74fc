//! Stores the sample in each way on a private server, and measures what queries read.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::fs::statvfs;
use seekscope_advice::collection::FileFacts;
use seekscope_advice::left_out;
use seekscope_advice::sample::Wanted;
use seekscope_advice::trial::{Answered, InsertCost, Questions, Stored};
use seekscope_advice::{
    AdviceError, Present, Proposal, SampleFacts, Trial, TrialOptions, Usage, Way, check_answers,
    proposals, verdict, weigh,
};
use seekscope_run::units::{format_bytes, format_count};
use seekscope_run::{
    AdviceSample, DeviceModel, LeftOutQueries, Limitation, MemberState, QueryShape, ShapeCost,
    StoringWay, WayKind, visible,
};
use seekscope_server::{
    LocalServerOptions, PrivateServer, ProcFs, ServerBinary, ServerKind, Workspace,
};
use tokio::time::timeout;

use super::seconds::{self, fill_in_block};
use super::{Advise, leave_out, record};
use crate::exit::{self, Elsewhere, message_of};
use crate::local_members::LocalMembers;
use crate::session::Session;

/// Cold starts for each shape of each way.
const ROUNDS: u32 = 4;
/// The most bytes of documents that are copied: a query's neighbourhood is what counts, not the amount.
const SAMPLE_BYTES_MAX: u64 = 64 << 20;
const CACHE_BYTES: u64 = 256 << 20;
/// What the sample in nine ways, the journal and the server's own files take at most.
const SPACE_BYTES: u64 = 20 * SAMPLE_BYTES_MAX;
const TIME_OVER: &str = "the time for the trials ran out: allow more with --budget";

/// Where a trial can take place, known before the queries are watched.
pub(super) struct TrialPlace {
    parent: PathBuf,
    binary: ServerBinary,
}

impl Advise<'_> {
    /// Finds the private server's binary and a folder with enough room for its data. `pid` is the server's process, if it
    /// runs on this host.
    pub(super) async fn trial_place(
        &self,
        session: &Session,
        pid: Option<u32>,
    ) -> Result<TrialPlace> {
        let parent = session.data_folder(self.args.data_dir.as_deref())?;
        let space =
            statvfs(&parent).with_context(|| format!("cannot look at {}", parent.display()))?;
        let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
        if free_bytes < SPACE_BYTES {
            return Err(Elsewhere(format!(
                "{} has {} free, and a trial can take {}: name another folder with --data-dir",
                parent.display(),
                format_bytes(free_bytes),
                format_bytes(SPACE_BYTES)
            ))
            .into());
        }
        let named = self.args.server_binary.as_deref();
        // The server's own program is of its release.
        let own = match named {
            Some(_) => None,
            None => self.own_program(pid).await,
        };
        let binary = match own {
            Some(own) => own,
            None => ServerBinary::find(
                named,
                Some(&self.environment.search_path),
                &self.environment.tool_folders,
            )?,
        };
        match binary.kind {
            ServerKind::Mongod => Ok(TrialPlace { parent, binary }),
            _ => Err(exit::Usage(format!(
                "a trial needs a mongod, which counts the blocks that it reads of each file, and {} is none: name one \
                 with --server-binary",
                binary.path.display()
            ))
            .into()),
        }
    }

    /// Returns the program of the server, or of one that keeps data behind a router, if that runs on this host.
    async fn own_program(&self, pid: Option<u32>) -> Option<ServerBinary> {
        let proc_fs = ProcFs::host();
        let mongod = |pid| {
            let program = ServerBinary::of_process(&proc_fs, pid);
            program.filter(|own| own.kind == ServerKind::Mongod)
        };
        if let Some(own) = pid.and_then(mongod) {
            return Some(own);
        }
        let here = LocalMembers::find(&self.args.uri, &proc_fs).await.ok()??;
        here.members.iter().find_map(|member| mongod(member.pid))
    }

    /// Tries the ways that fit the shapes, and records what each costs and which is advised.
    pub(super) async fn try_ways(
        &self,
        session: &mut Session,
        place: TrialPlace,
        shapes: &[QueryShape],
        file: FileFacts,
        disk: &DeviceModel,
    ) -> Result<()> {
        let begun = Instant::now();
        let compressor = file.compressor.clone();
        let trial = self.start(session, place, file).await?;
        let sample = self.take_sample(&trial, shapes).await?;
        let before = Usage::read(self.server, self.namespace).await;
        let shapes = &self.with_known_fields(session, shapes, &sample)?;
        let advice = record(&mut session.document);
        advice.shapes.clone_from(shapes);
        advice.sample = Some(AdviceSample {
            documents: sample.documents,
            bytes: sample.bytes,
        });
        advice.trial = Some(trial.facts());
        let hello = self.server.hello().await;
        let present = Present {
            indexes: &self.indexes,
            keeps_file: self.has_fixed_order() || self.definition.is_on_shards(),
            is_on_shards: self.definition.is_on_shards(),
            is_of_secondary: hello.is_ok_and(|hello| hello.state == MemberState::Secondary),
            compressor: compressor.as_deref(),
        };
        let proposals = proposals(shapes, present, &sample);
        advice.ways = proposals.iter().map(described).collect();
        session.save()?;
        let decays: Vec<bool> = proposals.iter().map(|proposal| proposal.decays).collect();
        let mut tried = Tried {
            trial,
            prepared: begun.elapsed(),
            shapes,
            sample: &sample,
            questions: Vec::new(),
            answers: Answers::default(),
            counts_ids: proposals
                .iter()
                .any(|proposal| proposal.way == Way::GrowingId),
        };
        for (number, proposal) in proposals.iter().enumerate() {
            let left = self.args.budget.saturating_sub(begun.elapsed());
            let name = proposal.way.name();
            let text = format!(
                "trying {} ({} of {})",
                visible(&name),
                number + 1,
                proposals.len()
            );
            let step = self.progress.step(text);
            let measured = match tried.try_within(left, number, &proposal.way).await {
                // Without the present way there is nothing to compare with.
                Err(error) if number == 0 => return Err(error),
                measured => measured.map_err(|error| message_of(&error)),
            };
            drop(step);
            let advice = record(&mut session.document);
            if let Some(way) = advice.ways.get_mut(number) {
                fill_in(way, measured);
                fill_in_block(way, disk);
            }
            for (earlier, why) in tried.answers.lost.drain(..) {
                if let Some(way) = advice.ways.get_mut(earlier) {
                    fill_in(way, Err(why));
                }
            }
            weigh(shapes, &mut advice.ways);
            seconds::fill_in(advice);
            let queries_per_hour = seconds::queries_per_hour(advice);
            advice.verdict = verdict(&advice.ways, &decays, queries_per_hour);
            advice.trial = Some(tried.trial.facts());
            session.save()?;
        }
        self.note_versions(session);
        let is_watched = record(&mut session.document).collection.used.is_some();
        if !is_watched && let Ok(before) = before {
            let after = Usage::read(self.server, self.namespace).await;
            record(&mut session.document).collection.used =
                after.ok().and_then(|after| after.since(&before));
        }
        Ok(())
    }

    async fn start(&self, session: &Session, place: TrialPlace, file: FileFacts) -> Result<Trial> {
        let TrialPlace { parent, binary } = place;
        let workspace = Workspace::create(&parent, &self.environment.lease_folder)?;
        let options = LocalServerOptions::new(binary, workspace.data_directory(), CACHE_BYTES);
        let private = PrivateServer::new(workspace, options, None);
        let documents = session
            .document
            .advice
            .as_ref()
            .map_or(0, |a| a.collection.documents);
        let options = TrialOptions {
            rounds: ROUNDS,
            create: file.create,
            indexes: self.indexes.clone(),
            documents,
            page_bytes: file.page_bytes,
            index_page_bytes: file.index_page_bytes,
        };
        let _step = self.progress.step("starting a server for the trial");
        Ok(Trial::start(private, options).await?)
    }

    async fn take_sample(&self, trial: &Trial, shapes: &[QueryShape]) -> Result<SampleFacts> {
        let mut fields = vec![String::from("_id")];
        for shape in shapes {
            for field in shape.fields().chain(shape.projection.iter().flatten()) {
                if !fields.contains(field) {
                    fields.push(field.clone());
                }
            }
        }
        let wanted = Wanted {
            namespace: self.namespace,
            documents: self.args.sample,
            bytes_max: SAMPLE_BYTES_MAX,
            fields: &fields,
        };
        let step = self
            .progress
            .counted("copying the newest documents", self.args.sample);
        let taken = trial
            .take_sample(self.server, wanted, &|done| step.at(done))
            .await;
        Ok(taken?)
    }

    /// Returns the shapes whose fields the sampled documents have. Nothing can be asked of the others in a trial, and a
    /// misspelt field would be advised an index.
    fn with_known_fields(
        &self,
        session: &mut Session,
        shapes: &[QueryShape],
        sample: &SampleFacts,
    ) -> Result<Vec<QueryShape>> {
        let (mut known, mut left_out) = (Vec::new(), Vec::new());
        let mut why = String::new();
        let earlier = record(&mut session.document).left_out.iter();
        let rates = earlier.map(|one| one.per_s);
        let rates = rates.chain(shapes.iter().map(|shape| shape.per_s));
        let all: Option<f64> = rates.sum();
        for shape in shapes {
            let Some(field) = sample.missing_field(shape) else {
                known.push(shape.clone());
                continue;
            };
            why = format!(
                "none of the newest {} documents of {} has the field {}",
                format_count(sample.documents),
                visible(&self.namespace.to_string()),
                visible(field)
            );
            left_out.push(LeftOutQueries {
                shape: left_out::shape(shape),
                why: why.clone(),
                per_s: shape.per_s,
                share: shape.per_s.zip(all).map(|(rate, all)| rate / all),
                examined_share: None,
            });
        }
        leave_out(
            session,
            left_out,
            "check that it is spelt as in the documents",
        );
        match known.is_empty() {
            true => Err(no_known_field(&why, !self.args.query.is_empty())),
            false => Ok(known),
        }
    }

    /// Returns whether the server keeps the documents in an order of its own: capped and clustered collections.
    fn has_fixed_order(&self) -> bool {
        let options = self.definition.options();
        options.get_bool("capped").unwrap_or(false) || options.contains_key("clusteredIndex")
    }

    /// Says where the trial's server is of another release than the target: they may choose other plans.
    fn note_versions(&self, session: &mut Session) {
        let target = session.document.target.as_ref().map(|t| t.version.clone());
        let trial = session
            .document
            .advice
            .as_ref()
            .and_then(|a| a.trial.clone());
        let (Some(target), Some(trial)) = (target, trial) else {
            return;
        };
        let release = |version: &str| version.split('.').take(2).collect::<Vec<_>>().join(".");
        if release(&target) != release(&trial.version) {
            session.limit(Limitation {
                what: "the ways were tried on another release than that of the server".into(),
                why: format!(
                    "{} {} was found, and the server is {target}",
                    trial.product, trial.version
                ),
                remedy: "name a mongod of its release with --server-binary".into(),
            });
        }
    }
}

/// Returns the error that no query is left to be tried. `are_told`: by the user, and not by the server.
fn no_known_field(why: &str, are_told: bool) -> anyhow::Error {
    let why = format!("{why}, and no other query is known");
    match are_told {
        true => exit::Usage(why).into(),
        false => Elsewhere(why).into(),
    }
}

/// What the ways answer.
#[derive(Default)]
struct Answers {
    /// The answers of each way of which it is not known that it lost documents, with its number.
    kept: Vec<(usize, Vec<Option<Answered>>)>,
    /// The ways that have been found to lose documents since they were tried, each with why that is known.
    lost: Vec<(usize, String)>,
}

impl Answers {
    /// Takes in what a way answers. The way that finds most documents is the one that lost none.
    fn add(&mut self, number: usize, answered: &[Option<Answered>]) -> Result<(), AdviceError> {
        for (_, earlier) in &self.kept {
            check_answers(answered, earlier)?;
        }
        let lost = &mut self.lost;
        self.kept
            .retain(|(earlier, theirs)| match check_answers(theirs, answered) {
                Ok(()) => true,
                Err(why) => {
                    lost.push((*earlier, why.to_string()));
                    false
                }
            });
        self.kept.push((number, answered.to_vec()));
        Ok(())
    }
}

/// The trial, and what its ways are asked.
struct Tried<'a> {
    trial: Trial,
    /// How long it took until the first way could be tried.
    prepared: Duration,
    shapes: &'a [QueryShape],
    sample: &'a SampleFacts,
    /// Drawn once the present way is stored, and the same for all ways.
    questions: Vec<Questions>,
    answers: Answers,
    /// Whether the ways may differ in what inserts read of the index on `_id`.
    counts_ids: bool,
}

/// What was measured of a way.
struct Measured {
    stored: Stored,
    costs: Vec<Option<ShapeCost>>,
    inserts: InsertCost,
}

impl Tried<'_> {
    /// Tries a way in the time that is left.
    async fn try_within(&mut self, left: Duration, number: usize, way: &Way) -> Result<Measured> {
        if !left.is_zero()
            && let Ok(measured) = timeout(left, self.try_way(number, way)).await
        {
            return measured.map_err(|error| error.of_trial().into());
        }
        Err(Elsewhere(match number {
            0 => time_over_at_once(self.prepared, left),
            _ => TIME_OVER.into(),
        })
        .into())
    }

    async fn try_way(&mut self, number: usize, way: &Way) -> Result<Measured, AdviceError> {
        let stored = self.trial.store(number, way).await?;
        if self.questions.is_empty() {
            for shape in self.shapes {
                let drawn = self.trial.draw(shape, self.sample, &stored).await?;
                self.questions.push(drawn);
            }
        }
        let mut answered = Vec::new();
        for questions in &self.questions {
            answered.push(self.trial.measure(number, way, &stored, questions).await?);
        }
        self.answers.add(number, &answered)?;
        let inserts = self
            .trial
            .measure_inserts(number, way, &stored, self.counts_ids);
        Ok(Measured {
            inserts: inserts.await?,
            stored,
            costs: answered.into_iter().map(|of| Some(of?.cost)).collect(),
        })
    }
}

/// Says that the time did not suffice even for the way in which the documents are stored now, and where it went.
fn time_over_at_once(prepared: Duration, left: Duration) -> String {
    let spent = match left.is_zero() {
        true => String::new(),
        false => format!(
            ", and storing it as it is now and running the queries on it took more than the {:.1} s that were left",
            left.as_secs_f64()
        ),
    };
    format!(
        "the time for the trials ran out before anything was measured: starting a server and copying the sample took {:.1} \
         s{spent}; give more with --budget, or less to copy with --sample",
        prepared.as_secs_f64()
    )
}

fn described(proposal: &Proposal) -> StoringWay {
    let way = &proposal.way;
    let replaces = match way {
        Way::Index { replaces, .. } => replaces.as_ref().map(ToString::to_string),
        _ => None,
    };
    let bucket_ms = match way {
        Way::Buckets { span_ms, .. } => Some(*span_ms),
        _ => None,
    };
    let compressor = match way {
        Way::Compressor { name } => Some(name.clone()),
        _ => None,
    };
    let mut keys = way.keys().into_iter().map(|keys| keys.to_string());
    StoringWay {
        kind: way.kind(),
        compressor,
        name: way.name(),
        keys: keys.next(),
        more_keys: keys.collect(),
        creates_index: way.creates_index(),
        replaces,
        bucket_ms,
        reason: proposal.reason.clone(),
        not_measured: Some("the trial ended before".into()),
        ..StoringWay::default()
    }
}

fn fill_in(way: &mut StoringWay, measured: Result<Measured, String>) {
    way.not_measured = None;
    match measured {
        Err(why) => {
            way.costs.clear();
            way.not_measured = Some(why);
        }
        Ok(Measured {
            stored,
            costs,
            inserts,
        }) => {
            let sampled = stored.sampled.max(1) as f64;
            way.costs = costs;
            way.insert_ns = inserts.ns;
            way.id_blocks_per_insert = inserts.id_blocks;
            way.block_bytes = Some(stored.block_bytes);
            way.unpack_ns = stored.unpack_ns;
            way.stored_bytes_per_document = Some(stored.bytes as f64 / sampled);
            // Finished buckets were stored, which the application grows one by one.
            let is_known = stored.load_s > 0.0 && way.kind != WayKind::Buckets;
            way.load_documents_per_s = is_known.then(|| sampled / stored.load_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(returned: &[u64]) -> Vec<Option<Answered>> {
        let row = returned.iter().copied().enumerate();
        vec![Some(Answered {
            cost: ShapeCost::default(),
            returned: vec![row.collect()],
        })]
    }

    #[test]
    fn the_way_that_finds_most_documents_lost_none() {
        let mut all = Answers::default();
        all.add(0, &answers(&[0, 50])).unwrap();
        all.add(1, &answers(&[0, 50])).unwrap();
        assert!(all.lost.is_empty());
        all.add(2, &answers(&[100, 100])).unwrap();
        let lost: Vec<usize> = all.lost.iter().map(|(number, _)| *number).collect();
        assert_eq!(lost, [0, 1]);
        assert!(
            all.lost[0].1.contains("returned 50 documents"),
            "{:?}",
            all.lost
        );
        assert!(all.add(3, &answers(&[100, 70])).is_err());
        all.add(4, &answers(&[100, 100])).unwrap();
        assert_eq!(all.kept.len(), 2);
    }

    #[test]
    fn where_too_little_time_went_is_told() {
        let told = |left| time_over_at_once(Duration::from_millis(2_400), left);
        let some = told(Duration::from_secs(38));
        assert!(
            some.contains("took 2.4 s") && some.contains("the 38.0 s that were left"),
            "{some}"
        );
        assert!(!told(Duration::ZERO).contains("left"));
    }

    #[test]
    fn what_lost_documents_has_no_costs() {
        let mut way = StoringWay {
            costs: vec![Some(ShapeCost::default())],
            ..StoringWay::default()
        };
        fill_in(&mut way, Err("it lost documents".into()));
        assert!(way.costs.is_empty() && way.not_measured.is_some());
    }

    #[test]
    fn a_field_that_no_document_has_is_the_fault_of_who_told_it() {
        assert!(no_known_field("none has it", true).is::<exit::Usage>());
        assert!(no_known_field("none has it", false).is::<Elsewhere>());
    }
}
