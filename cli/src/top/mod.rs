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
use seekscope_server::ProcFs;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::args::TopArgs;
use crate::exit::{Elsewhere, Interrupted};
use crate::interruption::Interruption;
use crate::live_terminal::LiveTerminal;
use crate::progress::Progress;
use crate::subjects::Subjects;
use printing::Printer;
use screen::{SharedFrame, TopView};
use watch::Watch;

/// How often to look for a server that has gone.
const LOOK_FOR_IT: Duration = Duration::from_secs(5);
/// How often to look for a member that was not there.
const LOOK_FOR_OTHERS: Duration = Duration::from_secs(30);

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
    let mut search = Search::begin();
    while !terminal.has_ended() {
        ticks.tick().await;
        frame.put(watch.frame().await);
        match watch.is_alive() {
            true => search.step(args, &mut watch).await,
            false => watch = find_again(args, watch, &frame, &terminal).await?,
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
    let mut search = Search::begin();
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
        search.step(args, watch).await;
    }
    Ok(())
}

fn gone(watch: &Watch) -> Elsewhere {
    Elsewhere(format!("{} has ended", watch.subject()))
}

/// The search for missing members of a deployment. It goes on beside the pictures: one that hangs takes seconds.
struct Search {
    looking: Option<JoinHandle<Result<Subjects>>>,
    looked: Instant,
}

impl Search {
    fn begin() -> Self {
        Self {
            looking: None,
            looked: Instant::now(),
        }
    }

    /// Looks now and then, and starts over where more members are there than are watched.
    async fn step(&mut self, args: &TopArgs, watch: &mut Watch) {
        let found = self.looking.take_if(|looking| looking.is_finished());
        // Whoever cannot be found now is looked for again.
        if let Some(looking) = found
            && let Ok(Ok(found)) = looking.await
            && watch.is_exceeded_by(&found)
            && let Ok(mut more) = Watch::of(found, args).await
        {
            // Rates need two readings.
            more.frame().await;
            *watch = more.since(watch.started_ns());
        }
        let every = match watch.has_lost_one() {
            true => LOOK_FOR_IT,
            false => LOOK_FOR_OTHERS,
        };
        if self.looking.is_none() && watch.misses_members() && self.looked.elapsed() >= every {
            self.looked = Instant::now();
            let (uri, pid) = (args.uri.clone(), args.pid);
            self.looking = Some(tokio::spawn(async move {
                Subjects::find(uri.as_deref(), pid, &ProcFs::host()).await
            }));
        }
    }
}

/// Waits for a server to come back as another process after a restart, and starts over.
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
    let started_ns = ended.started_ns();
    drop(ended);
    frame.change(|frame: &mut TopFrame| frame.subject = subject);
    loop {
        tokio::time::sleep(LOOK_FOR_IT).await;
        match Watch::begin(args).await {
            Ok(watch) if watch.processes() > 0 => return Ok(watch.since(started_ns)),
            Ok(_) => {}
            Err(error) if terminal.has_ended() => return Err(error),
            Err(_) => {}
        }
    }
}
