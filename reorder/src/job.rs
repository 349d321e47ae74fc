//! Runs one reordering: from its record to the moment before the swap.

use std::path::PathBuf;
use std::time::Instant;

use seekscope_run::Reordered;
use seekscope_server::ServerError;

use crate::backlog::{Backlog, Outlook};
use crate::catch_up::{CHUNK_KEYS, CatchUp};
use crate::checkpoints::Checkpoints;
use crate::copy::{Reading, copy, read_again, verify};
use crate::follow::Follower;
use crate::guard::Guard;
use crate::hold::Hold;
use crate::indexes::Built;
use crate::reader::ScanOrder;
use crate::site::Site;
use crate::spool::Spool;
use crate::state::Record;
use crate::writes::{WriteCounts, Written};
use crate::{
    By, CaughtUp, Definition, GuardLimits, Judge, Phase, Progress, ReorderError, Step, indexes,
    trial, under_way, undo,
};

/// Attempts at a last moment in which the server expires nothing.
const LAST_MOMENTS: u32 = 3;
/// Attempts at building unique indexes while values move between documents.
const UNIQUE_BUILDS: u32 = 8;

pub(crate) struct Job<'a> {
    pub(crate) site: Site,
    pub(crate) record: Record,
    pub(crate) definition: Definition,
    pub(crate) by: By,
    pub(crate) max_rate_bytes_per_s: Option<u64>,
    pub(crate) guard: Option<GuardLimits>,
    pub(crate) judge: Option<&'a mut (dyn Judge + 'static)>,
    pub(crate) spool: PathBuf,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) done: Reordered,
}

/// How others' writes are detected.
pub(crate) enum Watch {
    Stream(Follower, CatchUp),
    /// The server's counters, or reading again where those cannot tell.
    Counters,
}

impl Watch {
    /// Works as long as the changes can be followed.
    async fn while_followed<T>(
        &self,
        site: &Site,
        work: impl Future<Output = Result<T, ReorderError>>,
    ) -> Result<T, ReorderError> {
        match self {
            Self::Stream(follower, _) => tokio::select! {
                done = work => done,
                error = follower.ended(site) => Err(error),
            },
            Self::Counters => work.await,
        }
    }
}

/// Returns whether a unique index found a value twice. (The server's error has no number of its own once it is a
/// command's.)
fn is_duplicate_value(error: &ReorderError) -> bool {
    matches!(error, ReorderError::Server(ServerError::Failed { why, .. }) if why.contains("E11000"))
}

impl Job<'_> {
    /// Runs everything up to the swap. The record decides where to begin. Afterwards writers are stopped, and
    /// original and copy are equal.
    pub(crate) async fn prepare(&mut self, hold: &mut Hold<'_>) -> Result<Watch, ReorderError> {
        let mut guard = Guard::start(&self.site, self.guard).await;
        if self.record.phase > Phase::Copying {
            under_way::until_idle(&self.site, self.progress).await?;
        }
        let mut watch = self.watch(hold.is_quiesced()).await?;
        let site = self.site.clone();
        let is_followed = matches!(watch, Watch::Stream(..));
        let filled = self.fill(is_followed, &mut guard);
        watch.while_followed(&site, filled).await?;
        self.build_indexes(&mut watch).await?;
        self.site.check_target(&self.record.original).await?;
        self.done.pauses = guard.pauses;
        self.done.paused_s = guard.paused.as_secs_f64();
        if let Watch::Stream(follower, catch_up) = &mut watch {
            self.catch_up(follower, catch_up).await?;
        }
        let is_judged = self.by == By::Natural && !self.record.forced;
        if let Some(judge) = self.judge.as_mut().filter(|_| is_judged) {
            self.progress.step(Step::Judging);
            let changes = match &watch {
                Watch::Stream(_, catch_up) => catch_up.applied_changes,
                Watch::Counters => 0,
            };
            let judged = judge.judge(self.site.copy_namespace(), changes).await;
            let namespace = self.site.namespace.to_string();
            judged.map_err(|why| ReorderError::NoBetter { namespace, why })?;
            // Apply what arrived during the check, so that the last moment stays short.
            if let Watch::Stream(follower, catch_up) = &mut watch {
                self.catch_up(follower, catch_up).await?;
            }
        }
        self.progress.step(Step::LastMoment);
        hold.stop(&self.site, &mut self.record).await?;
        self.last_moment(&mut watch, &mut guard).await?;
        Ok(watch)
    }

    /// Begins to watch for writes, before anything is read. Where the position in the stream is lost, what
    /// had been copied is useless.
    async fn watch(&mut self, quiesced: bool) -> Result<Watch, ReorderError> {
        let site = self.site.clone();
        let spool = Spool::create(&self.spool)?;
        let catch_up = CatchUp::new(spool.clone(), self.record.seed());
        if let (Some(token), true) = (&self.record.token, self.record.phase > Phase::Copying) {
            let opened = Follower::open(&site, Some(token.clone()), spool.clone()).await;
            if let Ok(follower) = opened
                && follower.barrier(&site).await.is_ok()
            {
                self.done.writes_seen_by = "change stream".into();
                return Ok(Watch::Stream(follower, catch_up));
            }
        }
        if self.record.phase > Phase::Copying && self.record.token.is_none() && quiesced {
            self.done.writes_seen_by = "the server's counters".into();
            return Ok(Watch::Counters);
        }
        self.begin_anew().await?;
        match Follower::open(&site, None, spool).await {
            Ok(follower) => {
                // Everything that comes before the mark is in the original already.
                let seen = follower.barrier(&site).await?;
                self.record.token = seen.token;
                self.record.writes = None;
                self.done.writes_seen_by = "change stream".into();
                self.record.save(&site).await?;
                Ok(Watch::Stream(follower, catch_up))
            }
            Err(_) if quiesced => {
                self.record.token = None;
                self.record.writes = WriteCounts::read(&site).await;
                self.done.writes_seen_by = "the server's counters".into();
                self.record.save(&site).await?;
                Ok(Watch::Counters)
            }
            Err(error) => Err(site.refused(format!(
                "changes cannot be followed ({}); stop its writers for the whole time and use \
                 --quiesced",
                site.failed("watch", &error)
            ))),
        }
    }

    /// Starts over with nothing copied yet. On resume any earlier copy is dropped.
    async fn begin_anew(&mut self) -> Result<(), ReorderError> {
        let had_copy = self.record.copy.is_some();
        let documents = match had_copy {
            true => self.site.count(self.site.copy_name()).await.ok(),
            false => None,
        };
        undo::drop_copy(&self.site, &mut self.record).await?;
        if had_copy {
            self.progress.begun_anew(documents);
        }
        let definition = Definition::of(&self.site, self.site.target_name()).await?;
        self.site.check_target(&self.record.original).await?;
        let worker = self.record.worker.clone();
        let former = Record::new(&self.site, &self.by, &definition, worker)?;
        let former = std::mem::replace(&mut self.record, former);
        self.record.blocked = former.blocked;
        self.record.paused = former.paused;
        self.record.forced = former.forced;
        self.record.max_rate = former.max_rate;
        self.site.has_validator = definition.has_validator();
        self.definition = definition;
        self.record.save(&self.site).await?;
        self.progress.step(Step::Trying);
        trial::try_out(&self.site, &mut self.record, &self.definition).await
    }

    /// Fills the copy, and checks that it holds what was read.
    async fn fill(&mut self, is_followed: bool, guard: &mut Guard) -> Result<(), ReorderError> {
        let site = self.site.clone();
        if self.record.phase == Phase::Copying {
            self.progress.step(Step::Copying);
            let began = Instant::now();
            indexes::create_copy(&site, &self.definition).await?;
            self.record.copy = site.identity(site.copy_name()).await?;
            self.record.save(&site).await?;
            let reading = Reading {
                order: self.order()?,
                is_followed,
                seed: self.record.seed(),
                max_rate_bytes_per_s: self.max_rate_bytes_per_s,
            };
            let mut checkpoints = Checkpoints::of(&site).await;
            let copied = copy(&site, reading, guard, &mut checkpoints, self.progress);
            let sum = copied.await?;
            let asked = checkpoints.answers;
            self.done.checkpoints = asked.taken;
            self.done.checkpoint_refused = asked.refused;
            self.done.checkpoints_failed = asked.failed;
            self.done.checkpoint_failure = asked.failure;
            site.check_target(&self.record.original).await?;
            self.record.set_checksum(&sum);
            self.reach(Phase::Copied).await?;
            self.done.copy_s = began.elapsed().as_secs_f64();
        }
        let sum = self.record.checksum(&site)?;
        (self.done.documents, self.done.bytes) = (sum.documents, sum.bytes);
        if self.record.phase == Phase::Copied {
            self.progress.step(Step::Verifying);
            let began = Instant::now();
            verify(&site, &sum, guard, self.progress).await?;
            self.done.verify_s = began.elapsed().as_secs_f64();
            self.reach(Phase::Verified).await?;
        }
        Ok(())
    }

    /// Builds the indexes. Documents were read at different moments, so a value that moved from one to another stands
    /// twice in the copy until the changes are brought over, and again for a moment after each later move.
    async fn build_indexes(&mut self, watch: &mut Watch) -> Result<(), ReorderError> {
        if self.record.phase != Phase::Verified {
            return Ok(());
        }
        let site = self.site.clone();
        let mut attempts = match indexes::has_unique(&self.definition) {
            true => UNIQUE_BUILDS,
            false => 1,
        };
        let built = loop {
            if let Watch::Stream(follower, catch_up) = watch
                && indexes::has_unique(&self.definition)
            {
                self.catch_up(follower, catch_up).await?;
            }
            self.progress.step(Step::BuildingIndexes);
            let began = Instant::now();
            let build = indexes::build(&site, &self.definition);
            let built = watch.while_followed(&site, build).await;
            // Those that the interrupted run had built cost this one nothing.
            if !built.as_ref().is_ok_and(Built::were_there) {
                self.done.index_s += began.elapsed().as_secs_f64();
            }
            attempts -= 1;
            match built {
                Err(error) if attempts > 0 && is_duplicate_value(&error) => {}
                built => break built,
            }
        };
        self.done.indexes = built?.indexes;
        self.reach(Phase::Indexed).await
    }

    fn order(&self) -> Result<ScanOrder, ReorderError> {
        Ok(match &self.by {
            By::Natural => ScanOrder::Natural,
            By::Index(keys) => {
                let name = self.definition.index_name_for(keys);
                let name = name.map_err(|why| self.site.refused(why))?;
                ScanOrder::Index(name.to_owned(), keys.clone())
            }
        })
    }

    /// Records that everything before a phase is done.
    pub(crate) async fn reach(&mut self, phase: Phase) -> Result<(), ReorderError> {
        self.record.phase = phase;
        self.record.save(&self.site).await
    }

    async fn catch_up(
        &mut self,
        follower: &Follower,
        catch_up: &mut CatchUp,
    ) -> Result<(), ReorderError> {
        self.progress.step(Step::CatchingUp);
        let began = Instant::now();
        let mut backlog = Backlog::new();
        loop {
            let seen = follower.barrier(&self.site).await?;
            // The time that a mark takes to come through the stream says nothing of the changes.
            let round_began = Instant::now();
            let round = catch_up.round(&self.site).await?;
            self.done.catch_up_rounds += 1;
            let told = CaughtUp {
                round: self.done.catch_up_rounds,
                changes: round.changes,
                came: follower.seen().changes - seen.changes,
                seconds: round_began.elapsed().as_secs_f64(),
            };
            if round.unsettled == 0 {
                self.record.token = seen.token;
                self.record.save(&self.site).await?;
            }
            self.progress.caught_up(told);
            match backlog.after(&told, round.documents <= CHUNK_KEYS as u64) {
                Outlook::Last => break,
                Outlook::Goes => {}
                Outlook::TooFast {
                    came_per_s,
                    changes_per_s,
                } => {
                    return Err(self.site.aborted(format!(
                        "its writers are too fast: they change {came_per_s:.0} documents a second, and \
                         {changes_per_s:.0} a second can be brought over; slow them down, or reorder it at a \
                         quieter time"
                    )));
                }
            }
        }
        self.done.catch_up_s += began.elapsed().as_secs_f64();
        Ok(())
    }

    /// Applies the last changes while writers are stopped, and checks that the copy is equal.
    async fn last_moment(
        &mut self,
        watch: &mut Watch,
        guard: &mut Guard,
    ) -> Result<(), ReorderError> {
        let site = self.site.clone();
        match watch {
            Watch::Stream(follower, catch_up) => self.settle(follower, catch_up).await?,
            Watch::Counters => {
                self.check_unwritten(guard).await?;
                self.compare_counts().await?;
            }
        }
        indexes::let_expire(&site, &self.definition).await?;
        indexes::check(&site, &self.definition).await?;
        if let Watch::Stream(follower, catch_up) = watch {
            self.check_nothing_came(follower, catch_up).await?;
            self.done.applied_changes = catch_up.applied_changes;
        }
        site.check_target(&self.record.original).await
    }

    /// Applies what is left, until both have as many documents. The server may expire some between the two
    /// counts.
    async fn settle(
        &self,
        follower: &Follower,
        catch_up: &mut CatchUp,
    ) -> Result<(), ReorderError> {
        let mut attempts = if indexes::has_ttl(&self.definition) {
            LAST_MOMENTS
        } else {
            1
        };
        loop {
            follower.barrier(&self.site).await?;
            catch_up.settle(&self.site).await?;
            attempts -= 1;
            match self.compare_counts().await {
                Err(ReorderError::Aborted { .. }) if attempts > 0 => {}
                compared => return compared,
            }
        }
    }

    /// Checks that nothing was written since writers were stopped; the server may have expired documents,
    /// however.
    async fn check_nothing_came(
        &self,
        follower: &Follower,
        catch_up: &mut CatchUp,
    ) -> Result<(), ReorderError> {
        let mut before = follower.seen();
        for _ in 0..LAST_MOMENTS {
            let now = follower.barrier(&self.site).await?;
            if now.changes == before.changes {
                return Ok(());
            }
            if now.not_deletions > before.not_deletions || !indexes::has_ttl(&self.definition) {
                break;
            }
            catch_up.settle(&self.site).await?;
            before = now;
        }
        Err(self
            .site
            .aborted("somebody wrote to it in the last moment, in which nobody should"))
    }

    /// Returns what the server's counters say of the time since the copy began.
    async fn written(&self) -> Written {
        let now = WriteCounts::read(&self.site).await;
        match (&self.record.writes, &now) {
            (Some(before), Some(now)) => before.until(now),
            _ => Written::Unknown,
        }
    }

    /// Checks, without a stream, that nothing at all was written since before the copy.
    async fn check_unwritten(&mut self, guard: &mut Guard) -> Result<(), ReorderError> {
        let broken = self.site.aborted(if indexes::has_ttl(&self.definition) {
            "its documents have changed meanwhile, which --quiesced promised not to happen; if the \
             server expired some by a TTL index, stop that for as long \
             (setParameter ttlMonitorEnabled: false)"
        } else {
            "somebody wrote to it meanwhile, which --quiesced promised not to happen"
        });
        match self.written().await {
            Written::Yes => return Err(broken),
            // The server's counters do not include what it expires.
            Written::No if !indexes::has_ttl(&self.definition) => return Ok(()),
            _ => {}
        }
        self.done.writes_seen_by = "reading it again".into();
        self.progress.step(Step::Verifying);
        let sum = self.record.checksum(&self.site)?;
        let now = WriteCounts::read(&self.site).await;
        let same = read_again(&self.site, &sum, guard, self.progress).await?;
        let later = WriteCounts::read(&self.site).await;
        let written = now.zip(later).map(|(now, later)| now.until(&later));
        if same && written != Some(Written::Yes) {
            Ok(())
        } else {
            Err(broken)
        }
    }

    async fn compare_counts(&self) -> Result<(), ReorderError> {
        let site = &self.site;
        let counts = (
            site.count(site.target_name()).await?,
            site.count(site.copy_name()).await?,
        );
        if counts.0 == counts.1 {
            return Ok(());
        }
        // The server's own counts may be wrong after a crash.
        let failed = |e| site.failed("count", &e);
        let all = || bson::doc! { "_id": { "$gte": bson::Bson::MinKey } };
        let original = site.target().count_documents(all()).await.map_err(failed)?;
        let copied = site.copy().count_documents(all()).await.map_err(failed)?;
        if original == copied {
            return Ok(());
        }
        Err(site.aborted(format!(
            "it has {original} documents and the copy {copied}: somebody wrote to it meanwhile, or, if nobody did, it or \
             an index of it is damaged, which the server's command validate tells"
        )))
    }
}
