//! `seekscope top`: shows who is using the disk, until the reader has seen enough.
//!
//! `watch` counts, `names` maps files to collections, `screen` and `printing` show the results.

mod names;
mod printing;
mod screen;
mod watch;

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::Result;
use seekscope_report::live::top::TopFrame;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::args::TopArgs;
use crate::exit::{Elsewhere, Interrupted};
use crate::interruption::Interruption;
use crate::live_terminal::LiveTerminal;
use crate::progress::Progress;
use printing::Printer;
use screen::{SharedFrame, TopView};
use watch::Watch;

/// How often to look for a server that has gone.
const LOOK_FOR_IT: Duration = Duration::from_secs(5);
/// How long one of several members may take to come back.
const MEMBER_BACK_LIMIT: Duration = Duration::from_secs(60);

/// Runs the command.
pub async fn run(args: &TopArgs) -> Result<()> {
    let interruption = Interruption::listen();
    tokio::select! {
        biased;
        signal = interruption.first() => match args.count {
            // The regular end if no number of frames was asked for.
            None => Ok(()),
            Some(_) => Err(Interrupted(signal).into()),
        },
        shown = show(args) => shown,
    }
}

async fn show(args: &TopArgs) -> Result<()> {
    let progress = Progress::new(args.quiet);
    let mut watch = {
        let _step = progress.step("connecting");
        Watch::begin(args).await?
    };
    let is_printed = args.once || args.json || args.count.is_some();
    let terminals = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    if is_printed || !terminals {
        return print(args, &mut watch, progress.width()).await;
    }
    let frame = SharedFrame::new(watch.frame().await);
    let terminal = LiveTerminal::start(TopView::new(frame.clone(), args.sort.order()))?;
    let mut ticks = ticks(args.every);
    while !terminal.has_ended() {
        ticks.tick().await;
        frame.put(watch.frame().await);
        if watch.has_lost_one() {
            watch = find_again(args, watch, &frame, &terminal).await?;
        }
    }
    Ok(())
}

/// Returns the ticks. Those missed because the host was too busy are skipped, not made up for.
fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

async fn print(args: &TopArgs, watch: &mut Watch, width: u16) -> Result<()> {
    let mut printer = Printer::new(args, width);
    let count = if args.once { Some(1) } else { args.count };
    let mut ticks = ticks(args.every);
    // Rates need two readings.
    watch.frame().await;
    let mut printed = 0;
    while count.is_none_or(|count| printed < count) {
        ticks.tick().await;
        if !printer.print(&watch.frame().await)? {
            return Ok(());
        }
        printed += 1;
        if !watch.is_alive() {
            return Err(gone(watch).into());
        }
    }
    Ok(())
}

fn gone(watch: &Watch) -> Elsewhere {
    Elsewhere(format!("{} has ended", watch.subject()))
}

/// Waits for a server to come back as another process after a restart, and starts over. Of several members, those that
/// are left are watched alone if it does not come back in time.
async fn find_again(
    args: &TopArgs,
    ended: Watch,
    frame: &SharedFrame,
    terminal: &LiveTerminal,
) -> Result<Watch> {
    if args.pid.is_some() {
        return Err(gone(&ended).into());
    }
    let subject = format!("{} HAS ENDED, looking for it again", ended.lost());
    let before = ended.processes();
    drop(ended);
    frame.change(|frame: &mut TopFrame| frame.subject = subject);
    let since = Instant::now();
    loop {
        tokio::time::sleep(LOOK_FOR_IT).await;
        match Watch::begin(args).await {
            Ok(watch) if watch.processes() >= before || since.elapsed() >= MEMBER_BACK_LIMIT => {
                return Ok(watch);
            }
            Ok(_) => {}
            Err(error) if terminal.has_ended() => return Err(error),
            Err(_) => {}
        }
    }
}
