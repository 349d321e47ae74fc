//! Reads the server's own diagnostic files: its counters before the examination.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use seekscope_run::{ClockOffset, Limitation};
use seekscope_server::examination::diagnostic_files::read_history;

use crate::session::Session;

/// Long enough to compare this hour with the one before.
const HISTORY: Duration = Duration::from_secs(3_600);
/// Limits the points, which are drawn and nothing else, to what a chart can show: one every 15 seconds of an hour.
const POINTS_MAX: usize = 240;
const FOLDER: &str = "diagnostic.data";

/// Reads the history of a data directory into the run. What cannot be read is a limitation.
pub async fn read(session: &mut Session, data: &Path) -> Result<()> {
    let folder = data.join(FOLDER);
    if !folder.exists() {
        // Not every server keeps one.
        return Ok(());
    }
    let clock = session.document.started;
    let reading = tokio::task::spawn_blocking(move || history(folder, clock));
    let (facts, samples) = match reading.await? {
        Ok(history) => history,
        Err(why) => {
            session.limit(Limitation {
                what: "the server's history before this run was not read".into(),
                why,
                remedy: "run as root or as the server's user".into(),
            });
            return Ok(());
        }
    };
    session.directory.counter_writer()?.write(&samples)?;
    session.document.examination.get_or_insert_default().ftdc = Some(facts);
    Ok(())
}

type History = (seekscope_run::FtdcFacts, Vec<seekscope_run::CounterSample>);

fn history(folder: PathBuf, clock: ClockOffset) -> Result<History, String> {
    read_history(&folder, HISTORY, POINTS_MAX, clock).map_err(|error| error.to_string())
}
