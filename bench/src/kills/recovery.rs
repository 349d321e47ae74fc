//! What an operator does after a kill, by what the message or the documentation of the command says, and what must
//! be true before and after.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use bson::{Document, doc};
use rustix::process::Signal;
use seekscope_server::Server;

use super::combination::{During, Victim};
use super::documents::{COLLECTION, DATABASE};
use super::seekscope::{Ended, Seekscope};
use super::servers::Servers;

/// Where `reorder` records how far it has come.
const STATE_COLLECTION: &str = "seekscope_reorder";
/// One run, recovery or end, of a few tens of thousands of documents.
pub const RUN_LIMIT: Duration = Duration::from_secs(300);
const RESTORE: &str = "tune --restore ";

/// What recovery found.
#[derive(Debug, Default)]
pub struct Recovered {
    /// What an interrupted command, or one that ended by itself, should have removed.
    pub left: Vec<String>,
    /// What went wrong with the recovery itself.
    pub faults: Vec<String>,
}

/// A kill that is recovered from.
#[derive(Debug)]
pub struct Recovery<'a> {
    pub seekscope: &'a mut Seekscope,
    pub servers: &'a Servers,
    pub during: During,
    pub victim: Victim,
    pub signal: Signal,
    pub ended: &'a Ended,
    pub found: Recovered,
}

impl Recovery<'_> {
    /// Returns whether the command ended by itself, so that it could have removed everything.
    fn had_its_way(&self) -> bool {
        let was_asked = self.victim == Victim::Seekscope && self.signal != Signal::KILL;
        was_asked || self.ended.is_success()
    }

    /// Carries out the recovery as documented.
    pub async fn carry_out(&mut self, resume: bool) -> Result<()> {
        let server = Server::connect(self.servers.uri()).await?;
        match self.during {
            During::Reorder => {
                if self.had_its_way() && recorded(&server).await?.is_some() {
                    let left = "it left its record, although it could end as it wanted";
                    self.found.left.push(left.into());
                }
                self.resume_or_roll_back(&server, resume).await
            }
            During::Bench | During::BenchIndex => self.bench_again(&server).await,
            During::Tune | During::TuneRestarts => self.restore_settings(&server).await,
        }?;
        // Without --yes nothing is removed, and what there is fails the command.
        let clean = self.seekscope.run(&["clean"], RUN_LIMIT).await?;
        if !clean.text.contains("Nothing was left behind") {
            let told = clean.text.trim().replace('\n', " ");
            self.found.left.push(format!("clean says: {told}"));
            self.seekscope.run(&["clean", "--yes"], RUN_LIMIT).await?;
        }
        self.found
            .left
            .extend(self.seekscope.left_processes().await);
        Ok(())
    }

    /// One way, and the other if the first one is refused.
    async fn resume_or_roll_back(&mut self, server: &Server, resume: bool) -> Result<()> {
        let attempts = match resume {
            true => ["--resume", "--rollback"],
            false => ["--rollback", "--resume"],
        };
        for attempt in attempts {
            let line = self.seekscope.reorder(self.servers, &[attempt])?;
            let mut run = self.seekscope.start(&line, true)?;
            let ended = run.end(RUN_LIMIT).await?;
            let pending = recorded(server).await?.is_some();
            match (ended.is_success(), pending) {
                (true, false) => break,
                (true, true) => {
                    let told = format!("{attempt} ended with success and left its record");
                    self.found.faults.push(told);
                }
                (false, false) if ended.status.is_some() => break,
                (false, _) => {
                    let told = format!("{attempt} ended with {}", ended.in_words());
                    self.found.faults.push(told);
                }
            }
        }
        if self.seekscope.pause.is_wanted() {
            self.found
                .faults
                .push("the writers were left paused".into());
            self.seekscope.pause.lift();
        }
        Ok(())
    }

    /// `--drop` holds also after Ctrl-C. What stays otherwise is taken by the next benchmark, and goes with it.
    async fn bench_again(&mut self, server: &Server) -> Result<()> {
        if !self.has_own_database(server).await? {
            return Ok(());
        }
        let says_so = self.ended.text.contains("seekscope_bench");
        if self.had_its_way() || (self.victim != Victim::Seekscope && !says_so) {
            let left = "its database stays, in spite of --drop, and nothing says so";
            self.found.left.push(left.into());
        }
        let mut again = self.seekscope.begin(self.during, self.servers)?;
        let ended = again.end(RUN_LIMIT).await?;
        if !ended.is_success() {
            let told = format!("the next benchmark ended with {}", ended.in_words());
            self.found.faults.push(told);
        }
        Ok(())
    }

    /// Restores the settings with the command that the session itself, or `clean`, names.
    async fn restore_settings(&mut self, server: &Server) -> Result<()> {
        let clean = self.seekscope.run(&["clean"], RUN_LIMIT).await?;
        let told = format!("{}\n{}", self.ended.text, clean.text);
        let named = told.lines().rev().find_map(|line| line.split_once(RESTORE));
        if let Some((_, run)) = named {
            let run = run.split_whitespace().next().unwrap_or_default().to_owned();
            if self.had_its_way() {
                let left = "it left settings, although it could end as it wanted";
                self.found.left.push(left.into());
            }
            let uri = self.servers.durable_uri();
            let line = ["tune", "--restore", &run, &uri];
            let restored = self.seekscope.run(&line, RUN_LIMIT).await?;
            if !restored.is_success() {
                let told = format!("tune --restore ended with {}", restored.in_words());
                self.found.faults.push(told);
            }
        }
        // They stay for the next session; the report says so, and how they are dropped.
        if let Some(name) = self.during.own_database() {
            server.database(name).drop().await?;
        }
        Ok(())
    }

    async fn has_own_database(&self, server: &Server) -> Result<bool> {
        let names = server.client().list_database_names().await?;
        let own = self.during.own_database();
        Ok(own.is_some_and(|own| names.iter().any(|name| name == own)))
    }
}

/// Whether the run directory can be shown again.
pub async fn wrong_report(seekscope: &mut Seekscope, out: &Path) -> Result<Option<String>> {
    if !out.join("run.json").exists() {
        return Ok(None);
    }
    let path = out.display().to_string();
    let shown = seekscope.run(&["report", &path], RUN_LIMIT).await?;
    // What was killed before it measured anything says that.
    let is_right = shown.is_success() || shown.text.contains("measured nothing");
    Ok((!is_right).then(|| format!("report ended with {}", shown.in_words())))
}

/// The phase that `reorder` has recorded for the collection.
pub async fn recorded(server: &Server) -> Result<Option<String>> {
    let states = server
        .database(DATABASE)
        .collection::<Document>(STATE_COLLECTION);
    let state = states.find_one(doc! { "_id": COLLECTION }).await?;
    Ok(state.map(|state| state.get_str("phase").unwrap_or("?").to_owned()))
}
