//! Puts settings back, and says of each what became of it.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use seekscope_settings::apply::{Means, Waiting};
use seekscope_settings::{Appliers, Restored, SetByOthers, Silent};

use super::rolling;
use crate::bench::Stage;
use crate::exit::Usage;
use crate::interruption::Interruption;
use crate::progress::Progress;
use crate::unrestored;

/// A wait is told of as often as this.
const TELLING: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(50);

/// Does the work, and says what it waits for where that takes long.
pub async fn telling<T>(progress: Progress, waiting: &Waiting, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        match tokio::time::timeout(TELLING, &mut work).await {
            Ok(done) => return done,
            Err(_) => {
                if let Some((what, waited)) = waiting.now() {
                    let waited_s = waited.as_secs();
                    progress.say(format!(
                        "  waiting for {what}, {waited_s} s; Ctrl-C ends it"
                    ));
                }
            }
        }
    }
}

/// Waits for a signal that comes during a wait. One that came before asked for settings to be put back.
async fn next_signal(interruption: Option<&Interruption>, waiting: &Waiting) {
    let Some(interruption) = interruption.filter(|one| one.signal().is_none()) else {
        return std::future::pending().await;
    };
    interruption.first().await;
    // What takes no time is put back nevertheless.
    while waiting.now().is_none() {
        tokio::time::sleep(POLL).await;
    }
}

/// Leaves what somebody else has set since the last configuration was applied as it is. Returns it in words.
pub async fn leave_to_others(applier: &mut Appliers) -> Vec<String> {
    let others = applier.set_by_others().await;
    applier.leave(&others).await;
    let restarts = applier.restore_restarts();
    others.iter().map(|other| left(other, restarts)).collect()
}

/// Says what is left as somebody else has set it. `restarts` says that the rest is put back by a restart.
fn left(other: &SetByOthers, restarts: bool) -> String {
    let SetByOthers {
        knob,
        member,
        found,
        applied,
        original,
        is_until_restart,
    } = other;
    let until = match restarts && *is_until_restart {
        true => " until the restart that puts the rest back",
        false => "",
    };
    let on = match member.as_str() {
        "" => String::new(),
        member => format!(" on {member}"),
    };
    format!(
        "{knob} stays {found}{on}{until}: somebody else has set it since seekscope set {applied}; before that it was {original}"
    )
}

/// How putting settings back has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutBack {
    /// No setting was changed.
    Nothing,
    Everything,
    /// Everything but for what somebody else has set since, which is theirs.
    ButForOthers,
    /// Some setting is not as it was.
    NotAll,
}

impl PutBack {
    /// Returns whether every setting that was changed is its owner's again; `None` if none was changed.
    pub fn is_complete(self) -> Option<bool> {
        match self {
            Self::Nothing => None,
            Self::Everything | Self::ButForOthers => Some(true),
            Self::NotAll => Some(false),
        }
    }
}

/// Restores what the applier has changed, but for what somebody else has set since, and reports it. A signal ends the
/// wait for a restart, if there was none before; the settings that remain are outstanding then.
pub async fn put_back(
    progress: Progress,
    applier: &mut Appliers,
    interruption: Option<&Interruption>,
) -> PutBack {
    put_back_in_words(progress, applier, interruption).await.0
}

/// Does the same, and returns what was put back or stays in words, too.
pub async fn put_back_in_words(
    progress: Progress,
    applier: &mut Appliers,
    interruption: Option<&Interruption>,
) -> (PutBack, Vec<String>) {
    if !applier.is_outstanding() {
        let put_back = match (applier.is_restored(), applier.has_left_some()) {
            (true, true) => PutBack::ButForOthers,
            (true, false) => PutBack::Everything,
            (false, _) => PutBack::Nothing,
        };
        return (put_back, Vec::new());
    }
    let left = leave_to_others(applier).await;
    put_back_rest(progress, applier, interruption, left).await
}

/// Does the same where what somebody else has set since is left to them already, which `left` says.
pub async fn put_back_rest(
    progress: Progress,
    applier: &mut Appliers,
    interruption: Option<&Interruption>,
    left: Vec<String>,
) -> (PutBack, Vec<String>) {
    for left in &left {
        progress.complain(left);
    }
    let restored = {
        let _step = progress.step("putting settings back");
        let waiting = applier.waiting();
        tokio::select! {
            biased;
            () = next_signal(interruption, &waiting) => {
                progress.complain("The wait was ended; nothing more is put back.");
                return (PutBack::NotAll, left);
            }
            restored = telling(progress, &waiting, applier.restore()) => restored,
        }
    };
    tell_kept_edits(progress, applier);
    let told = restored_in_words(&restored);
    for line in &told {
        progress.say(format!("  {line}"));
    }
    for Silent { server, why } in &restored.silent {
        progress.complain(format!(
            "  {server} does not answer, so its settings could not be checked ({why}). If its process has ended, the settings made at run time are gone with it; settings written to a configuration file are still there."
        ));
    }
    if let Some(why) = &restored.not_noted {
        progress.say(format!("  That could not be written down: {why}"));
    }
    let put_back = match (restored.is_complete(), left.is_empty()) {
        (false, _) => PutBack::NotAll,
        (true, true) => PutBack::Everything,
        (true, false) => PutBack::ButForOthers,
    };
    (put_back, told.into_iter().chain(left).collect())
}

/// Says of each knob what was done.
fn restored_in_words(restored: &Restored) -> Vec<String> {
    let in_words = |(knob, result): &(String, Result<(), String>)| match result {
        Ok(()) => {
            let words = restored.put_back.get(knob);
            format!("{knob}: {}", words.map_or("as it was", String::as_str))
        }
        Err(why) => format!("{knob}: NOT put back: {why}"),
    };
    restored.knobs.iter().map(in_words).collect()
}

/// The earlier part of a session that is resumed.
#[derive(Debug, Clone, Copy)]
pub struct Resumed<'a> {
    pub run: &'a Path,
    /// Whether only its duel is left, which is fought on whichever member is the primary.
    pub is_at_duel: bool,
}

/// Restores what a session left changed before it is resumed, so that it starts from its original state. `is_elsewhere`
/// says that it goes on on another member, for which the former one need not answer.
pub async fn put_back_earlier(
    stage: &Stage,
    earlier: Option<Resumed<'_>>,
    means: &Means,
    is_elsewhere: bool,
) -> Result<()> {
    let Some(Resumed { run, is_at_duel }) = earlier else {
        return Ok(());
    };
    let Some(mut applier) = rolling::resume(run, means.clone())? else {
        return Ok(());
    };
    match put_back(stage.progress, &mut applier, Some(&stage.interruption)).await {
        PutBack::NotAll if is_elsewhere && is_at_duel => {
            stage.progress.complain(format!(
                "  The session goes on on another member; when that one answers again: {}",
                unrestored::remedy(run)
            ));
            Ok(())
        }
        PutBack::NotAll => Err(Usage(format!(
            "{}: not all that the session had changed could be put back; see above, and run --restore",
            run.display()
        ))
        .into()),
        _ => Ok(()),
    }
}

/// Says which configuration files somebody else has edited meanwhile.
pub fn tell_kept_edits(progress: Progress, applier: &mut Appliers) {
    for edits in applier.take_kept_edits() {
        progress.complain(edits.in_words());
    }
}
