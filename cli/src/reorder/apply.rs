//! Carries out a reordering: the announcement, the library's work, and the layout afterwards.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, bail};
use seekscope_reorder::{GuardLimits, ReorderError, Request, apply};
use seekscope_report::reorder::sentences;
use seekscope_run::units::format_count;
use seekscope_run::{Limitation, ReorderPlan, ReorderVerdict, Reordered, visible};
use seekscope_server::{Namespace, Server};

use super::collection_files::CollectionFiles;
use super::progress_lines::{End, ProgressLines};
use super::{Reorder, measurement, recovery, writers};
use crate::exit::{Elsewhere, Interrupted};
use crate::session::Session;

/// mongod takes a checkpoint every minute.
const CHECKPOINT_LIMIT: Duration = Duration::from_secs(70);
const TIME_STAMP_LAG: Duration = Duration::from_millis(10);
/// The copy pauses above this share of time in which all tasks of the host wait for I/O.
const IO_PRESSURE_MAX: f64 = 0.5;

impl Reorder {
    /// Rewrites the collection and measures it again, after the plan has been made.
    pub async fn apply(
        &self,
        session: &mut Session,
        files: &mut CollectionFiles,
        namespace: &Namespace,
    ) -> Result<()> {
        let folder = session.directory.path().to_path_buf();
        let record = measurement(&mut session.document);
        let plan = record.plan.clone().unwrap_or_default();
        self.insist(namespace, &plan)?;
        let mut request = self.request(namespace, &plan, files, folder)?;
        for sentence in sentences::contract(record) {
            self.progress.say(sentence);
        }
        let started = Instant::now();
        let progress_lines = ProgressLines::new(self.progress);
        let work = apply(&self.server, &mut request, &progress_lines, self.stop());
        let done = self.until_stopped(work).await;
        self.note_end(session, namespace, progress_lines.end(), &done);
        self.note_done(session, files, namespace, done?, started)
            .await
    }

    /// Refuses a reordering without a predicted gain, unless it is forced.
    fn insist(&self, namespace: &Namespace, plan: &ReorderPlan) -> Result<(), Elsewhere> {
        if plan.verdict == ReorderVerdict::Worthwhile || self.args.force {
            return Ok(());
        }
        Err(Elsewhere(format!(
            "{} is left as it is: {} Use --force to do it anyway.",
            visible(&namespace.to_string()),
            sentences::verdict(plan)
        )))
    }

    /// Returns the request, for a new or a resumed reordering.
    pub fn request(
        &self,
        namespace: &Namespace,
        plan: &ReorderPlan,
        files: &CollectionFiles,
        spool: PathBuf,
    ) -> Result<Request> {
        let guard = GuardLimits {
            io_pressure: Some(IO_PRESSURE_MAX),
            ..GuardLimits::default()
        };
        Ok(Request {
            namespace: namespace.clone(),
            by: self.by.clone(),
            max_rate_bytes_per_s: self.args.max_rate,
            writers: writers::control(&plan.blocking, &self.args.writers)?,
            guard: (!self.args.no_guard).then_some(guard),
            force: self.args.force,
            judge: self.judge(files, namespace),
            spool,
        })
    }

    /// Completes when a signal comes.
    pub fn stop(&self) -> impl Future<Output = ()> + Send + 'static {
        let interruption = self.interruption.clone();
        let progress = self.progress;
        async move {
            interruption.first().await;
            progress.say(
                "Rolling back, unless it was swapped already. A second signal ends at once; what it leaves is \
                 removed by --rollback.",
            );
        }
    }

    /// Waits for the work; if it was stopped, the error names the signal.
    pub async fn until_stopped(
        &self,
        work: impl Future<Output = Result<Reordered, ReorderError>>,
    ) -> Result<Reordered> {
        match work.await {
            Err(ReorderError::Stopped) => {
                self.interruption.check()?;
                Err(Interrupted("a signal").into())
            }
            other => Ok(other?),
        }
    }

    /// Records what was said meanwhile, and what became of a copy that was stopped.
    pub fn note_end(
        &self,
        session: &mut Session,
        namespace: &Namespace,
        end: End,
        done: &Result<Reordered>,
    ) {
        let End { mut said, undone } = end;
        if let Err(error) = done {
            let is_left = matches!(
                error.downcast_ref(),
                Some(ReorderError::NotRolledBack { .. } | ReorderError::ServerGone { .. })
            );
            let is_stopped = error.is::<Interrupted>();
            match undone.filter(|_| is_stopped) {
                Some(let_go) => {
                    let writers = &self.args.writers;
                    said.extend(recovery::what_was_undone(namespace, let_go, writers));
                }
                None if is_left => {
                    let uri = self.server.shown_uri();
                    said.push(recovery::what_undoes(namespace, &uri));
                }
                None => {}
            }
        }
        let record = measurement(&mut session.document);
        record.recovered.extend(said);
    }

    /// Records the result and measures the layout again, as of a checkpoint that includes it.
    pub async fn note_done(
        &self,
        session: &mut Session,
        files: &mut CollectionFiles,
        namespace: &Namespace,
        done: Reordered,
        started: Instant,
    ) -> Result<()> {
        let record = measurement(&mut session.document);
        record.by.clone_from(&done.by);
        record.elapsed_s = Some(started.elapsed().as_secs_f64());
        let lacking = checkpoints_lacking(&done);
        record.done = Some(done);
        for limitation in lacking {
            session.limit(limitation);
        }
        session.save()?;
        let forced = {
            let _step = self.progress.step("having the server take a checkpoint");
            let checkpoint = checkpoint(&self.server, files.path.as_deref());
            self.interruption.or(checkpoint).await
        };
        match forced {
            Ok(()) => measurement(&mut session.document).checkpoint_forced = true,
            Err(error) if error.is::<Interrupted>() => return unmeasured(session),
            Err(error) => session.limit(Limitation {
                what: "the layout afterwards may be of a checkpoint that has not all of it".into(),
                why: error.to_string(),
                remedy: "look again in a minute with seekscope layout".into(),
            }),
        }
        files.ask_again(namespace).await;
        let layout = files.layout(
            namespace,
            &self.args.disk,
            &mut session.document,
            &self.interruption,
        );
        let layout = match layout.await {
            Err(error) if error.is::<Interrupted>() => return unmeasured(session),
            layout => layout?,
        };
        measurement(&mut session.document).after = layout.map(|layout| layout.layout);
        session.save()
    }
}

/// Notes that a signal came when the collection had been replaced: what was asked for is done.
fn unmeasured(session: &mut Session) -> Result<()> {
    session.limit(Limitation {
        what: "the collection was replaced, and how it lies now was not measured".into(),
        why: "a signal came after the swap".into(),
        remedy: "see seekscope layout".into(),
    });
    session.save()
}

/// Returns limitations for checkpoints that were not taken, which cost the copy some of its order.
fn checkpoints_lacking(done: &Reordered) -> Vec<Limitation> {
    let mut lacking = Vec::new();
    if let Some(why) = &done.checkpoint_refused {
        let from = match done.checkpoints {
            0 => "the copy was written without checkpoints, which keep its leaves in order".into(),
            taken => format!(
                "after {} the copy was written without further checkpoints, which keep its leaves in order",
                format_count(taken)
            ),
        };
        lacking.push(Limitation {
            what: from,
            why: why.clone(),
            remedy: "let the login run fsync (built-in role hostManager)".into(),
        });
    }
    if let Some(why) = &done.checkpoint_failure {
        let asked = done.checkpoints + done.checkpoints_failed;
        lacking.push(Limitation {
            what: format!(
                "the server did not take {} of {} checkpoints, which keep the copy's leaves in order",
                format_count(done.checkpoints_failed),
                format_count(asked)
            ),
            why: why.clone(),
            remedy: "see the server's log for why fsync failed".into(),
        });
    }
    lacking
}

/// Takes a checkpoint: `fsync` without a lock flushes everything, which in mongod is one. Other servers may
/// only claim to, so their next checkpoint is waited for.
pub async fn checkpoint(server: &Server, data: Option<&Path>) -> Result<()> {
    let asked = SystemTime::now();
    seekscope_workload::checkpoint(server).await?;
    let Some(turtle) = data.map(|data| data.join("WiredTiger.turtle")) else {
        return Ok(());
    };
    let end = Instant::now() + CHECKPOINT_LIMIT;
    while Instant::now() < end {
        // Rewritten by every checkpoint. Time stamps of files lag slightly behind the clock.
        let written = turtle.metadata()?.modified()?;
        if written + TIME_STAMP_LAG >= asked {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("fsync did not lead to a checkpoint within {CHECKPOINT_LIMIT:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_that_were_not_taken_are_told_with_their_reason() {
        let mut done = Reordered {
            checkpoints: 41,
            ..Reordered::default()
        };
        assert_eq!(checkpoints_lacking(&done), []);
        (done.checkpoints_failed, done.checkpoint_failure) = (1, Some("a backup began".into()));
        let [lacking] = &checkpoints_lacking(&done)[..] else {
            panic!()
        };
        assert!(lacking.what.contains("1 of 42 checkpoints"), "{lacking:?}");
        assert!(!lacking.remedy.contains("hostManager"), "{lacking:?}");
        let refused = Reordered {
            checkpoint_refused: Some("the user may not run fsync".into()),
            ..Reordered::default()
        };
        let [lacking] = &checkpoints_lacking(&refused)[..] else {
            panic!()
        };
        assert!(lacking.what.contains("without checkpoints"), "{lacking:?}");
        assert!(lacking.remedy.contains("hostManager"), "{lacking:?}");
    }
}
