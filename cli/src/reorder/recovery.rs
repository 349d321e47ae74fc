//! `--resume` and `--rollback`: handle what an interrupted reordering left on the server.

use std::time::Instant;

use anyhow::Result;
use seekscope_reorder::{Pending, Phase, ReorderError, RolledBack, pending, resume, rollback};
use seekscope_run::{ReorderPlan, ReorderTask, shell_quoted, visible};
use seekscope_server::Namespace;

use super::progress_lines::ProgressLines;
use super::{Reorder, measurement, writers};
use crate::args::WritersArgs;
use crate::session::Session;

impl Reorder {
    /// Recovers one collection, or all. It is not a failure if nothing is pending.
    pub async fn recover(
        &self,
        namespace: Option<&Namespace>,
        arguments: Vec<String>,
    ) -> Result<()> {
        let task = match self.args.resume {
            true => ReorderTask::Resume,
            false => ReorderTask::Rollback,
        };
        let name = namespace.map_or_else(String::new, ToString::to_string);
        let found = async { Ok(pending(&self.server, namespace).await?) };
        let found = self.interruption.or(found).await?;
        let mut session = self.begin(task, &name, arguments)?;
        let worked = self.each(&mut session, found).await;
        // Whoever stopped the writers may have been killed before resuming them.
        let unknown = |error: &anyhow::Error| {
            matches!(error.downcast_ref(), Some(ReorderError::SwapUnknown { .. }))
        };
        let went_on = match &worked {
            Err(error) if unknown(error) => Ok(()),
            _ => writers::go_on(&self.args.writers).await,
        };
        self.finish(session, worked.and(went_on))
    }

    async fn each(&self, session: &mut Session, found: Vec<Pending>) -> Result<()> {
        for pending in found {
            let record = measurement(&mut session.document);
            record.namespace = pending.namespace.to_string();
            record.by.clone_from(&pending.by);
            let go_on_named = self.args.writers.continue_writers.is_some();
            let mut said = what_was_found(&pending, go_on_named);
            if self.args.resume {
                said.extend(what_resume_does(&pending, self.args.max_rate));
            }
            for sentence in said {
                self.progress.say(&sentence);
                record.recovered.push(sentence);
            }
            match self.args.resume {
                true => self.resume(session, &pending.namespace).await?,
                false => self.roll_back(session, &pending.namespace).await?,
            }
        }
        Ok(())
    }

    async fn resume(&self, session: &mut Session, namespace: &Namespace) -> Result<()> {
        let mut files = self.find_files(session, namespace).await?;
        let plan = ReorderPlan {
            blocking: writers::blocking(&self.server, &self.args.writers).await?,
            ..ReorderPlan::default()
        };
        let folder = session.directory.path().to_path_buf();
        let mut request = self.request(namespace, &plan, &files, folder)?;
        let started = Instant::now();
        let progress_lines = ProgressLines::new(self.progress);
        let work = resume(&self.server, &mut request, &progress_lines, self.stop());
        let done = self.until_stopped(work).await;
        self.note_end(session, namespace, progress_lines.end(), &done);
        self.note_done(session, &mut files, namespace, done?, started)
            .await?;
        let record = measurement(&mut session.document);
        record
            .recovered
            .push(format!("{} was completed.", name_of(namespace)));
        Ok(())
    }

    /// Rolls back. This is short and can be repeated if interrupted, so signals are not handled.
    async fn roll_back(&self, session: &mut Session, namespace: &Namespace) -> Result<()> {
        let progress_lines = ProgressLines::new(self.progress);
        let rolled_back = rollback(&self.server, namespace, &progress_lines).await?;
        drop(progress_lines);
        let text = match rolled_back {
            RolledBack::Original => as_it_was(namespace),
            RolledBack::AlreadySwapped => format!(
                "{} had been replaced by its verified copy already; only what was recorded about it is \
                 removed.",
                name_of(namespace)
            ),
        };
        measurement(&mut session.document).recovered.push(text);
        session.save()
    }
}

/// Returns sentences on what was found. `go_on_named`: the user named a command that resumes the writers.
fn what_was_found(pending: &Pending, go_on_named: bool) -> Vec<String> {
    let blocked = match pending.writes_blocked {
        true => ", with the server's writes blocked",
        false => "",
    };
    let mut found = vec![format!(
        "{} was left in the phase {}, in the order {}, by {}{blocked}.",
        pending.namespace,
        pending.phase.name(),
        pending.by,
        pending.worker
    )];
    if pending.writers_paused {
        found.push(match go_on_named {
            true => "Its writers had been paused; the command of --continue-writers lets them continue.".into(),
            false => "Its writers had been paused by the command of --pause-writers, and stay so: nothing \
                      here lets them continue, since no --continue-writers is named. Let them continue yourself."
                .into(),
        });
    }
    found
}

/// Says what is begun anew, and which limit holds for the rate of copying. `max_rate` is what was given now.
fn what_resume_does(pending: &Pending, max_rate: Option<u64>) -> Vec<String> {
    let mut said = Vec::new();
    let copies = pending.phase == Phase::Copying;
    if copies {
        said.push("An unfinished copy is started again.".to_string());
    }
    let rate = |bytes: u64| format!("{:.1} MB/s", bytes as f64 / 1e6);
    let limit = match (max_rate, pending.max_rate_bytes_per_s) {
        (Some(now), Some(before)) if now != before => Some(format!(
            "At most {} are copied, by --max-rate; it was {} when it began.",
            rate(now),
            rate(before)
        )),
        (Some(now), _) => Some(format!("At most {} are copied, by --max-rate.", rate(now))),
        (None, Some(before)) => Some(format!(
            "At most {} are copied, by the --max-rate that it was begun with; give another to change that.",
            rate(before)
        )),
        (None, None) => copies.then(|| {
            "No limit holds for the rate of copying, for none is recorded; --max-rate sets one."
                .into()
        }),
    };
    said.extend(limit);
    said
}

fn name_of(namespace: &Namespace) -> String {
    visible(&namespace.to_string())
}

/// Says that everything was rolled back.
fn as_it_was(namespace: &Namespace) -> String {
    format!("{} is as it was; the copy is removed.", name_of(namespace))
}

/// Says what became of a copy that was stopped, and of the writers.
pub fn what_was_undone(
    namespace: &Namespace,
    writers_let_go: bool,
    args: &WritersArgs,
) -> Vec<String> {
    let writers = match (writers_let_go, &args.continue_writers) {
        (true, Some(_)) => Some("The command of --continue-writers let its writers continue."),
        (true, None) => Some("The server accepts writes again."),
        // Whoever promised that nobody writes knows what they stopped.
        (false, _) if args.quiesced => None,
        (false, _) => Some("Its writers had not been stopped by then."),
    };
    let writers = writers.map(String::from);
    std::iter::once(as_it_was(namespace))
        .chain(writers)
        .collect()
}

/// Says how what is left is removed, where rolling back failed. `uri` is without secrets.
pub fn what_undoes(namespace: &Namespace, uri: &str) -> String {
    format!(
        "{} was not rolled back, and what is recorded of it is kept. Once the server is well, this \
         removes the copy: seekscope reorder {} {} --rollback",
        name_of(namespace),
        shell_quoted(uri),
        shell_quoted(&namespace.to_string())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_in(phase: Phase) -> Pending {
        Pending {
            namespace: "shop.orders".parse().unwrap(),
            phase,
            by: "natural".into(),
            worker: "seekscope 1, process 7 on h".into(),
            alive: false,
            writes_blocked: false,
            writers_paused: false,
            max_rate_bytes_per_s: None,
        }
    }

    #[test]
    fn what_is_begun_anew_and_how_fast_is_told() {
        let mut pending = left_in(Phase::Copying);
        let said = |pending: &Pending, now| what_resume_does(pending, now).join(" ");
        let unlimited = said(&pending, None);
        assert!(
            unlimited.contains("started again") && unlimited.contains("No limit holds"),
            "{unlimited}"
        );
        pending.max_rate_bytes_per_s = Some(8_000_000);
        let kept = said(&pending, None);
        assert!(
            kept.contains("At most 8.0 MB/s are copied, by the --max-rate that"),
            "{kept}"
        );
        let other = said(&pending, Some(16_000_000));
        assert!(
            other.contains("At most 16.0 MB/s") && other.contains("it was 8.0 MB/s"),
            "{other}"
        );
        // What is copied already is neither copied again nor limited.
        assert!(what_resume_does(&left_in(Phase::Indexed), None).is_empty());
    }

    #[test]
    fn what_was_stopped_is_said_to_be_undone_or_how_to_undo_it() {
        let namespace: Namespace = "shop.orders".parse().unwrap();
        let mut args = WritersArgs {
            quiesced: true,
            pause_writers: None,
            continue_writers: None,
        };
        let said = |let_go, args: &WritersArgs| what_was_undone(&namespace, let_go, args).join(" ");
        assert_eq!(
            said(false, &args),
            "shop.orders is as it was; the copy is removed."
        );
        args.quiesced = false;
        assert!(said(true, &args).contains("accepts writes again"));
        args.continue_writers = Some("./go.sh".into());
        assert!(said(true, &args).contains("let its writers continue"));
        assert!(said(false, &args).contains("had not been stopped"));
        let command = what_undoes(&namespace, "mongodb://h/?replicaSet=r");
        assert!(
            command
                .ends_with("seekscope reorder 'mongodb://h/?replicaSet=r' shop.orders --rollback"),
            "{command}"
        );
    }

    #[test]
    fn paused_writers_are_told_of_with_what_lets_them_go_on() {
        let mut pending = left_in(Phase::Indexed);
        assert_eq!(what_was_found(&pending, false).len(), 1);
        pending.writers_paused = true;
        let unnamed = what_was_found(&pending, false).join(" ");
        assert!(unnamed.contains("Let them continue yourself"), "{unnamed}");
        let named = what_was_found(&pending, true).join(" ");
        assert!(named.contains("lets them continue"), "{named}");
    }
}
