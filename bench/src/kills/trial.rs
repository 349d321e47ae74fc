//! Kills, one after the other, on servers whose documents live through all of them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

use super::combination::{During, Victim, wrong_message, wrong_status};
use super::examination::Definitions;
use super::recovery::{RUN_LIMIT, Recovered, Recovery, recorded, wrong_report};
use super::seekscope::{Ended, Running};
use super::table::{Ending, NOT_KILLED, Table, Trial};
use super::world::{Setting, World};

/// Writes between the kill and the recovery: it must cope with them.
const BEFORE_RECOVERY: Duration = Duration::from_millis(300);
/// The shortest and longest time that a killed server stays down, ms.
const AWAY_MS: (u64, u64) = (1_000, 9_000);
/// The share of the time of the run that was not killed over which kills are spread: others may be faster. Where one
/// had ended before its kill, the same share of that is taken for the next.
const COURSE: f64 = 0.85;
const HAD_ENDED: &str = "had ended";
/// One in this many kills of `reorder` waits for the swap, which is over too soon to be hit by chance.
const AIMED_AT_SWAP: u64 = 5;

/// Kills `victim` this many times. `told` hears of each trial when it is over.
pub async fn run_trials(
    setting: &Setting,
    (during, victim): (During, Victim),
    kills: u64,
    told: &mut dyn FnMut(&Trial),
) -> Result<Table> {
    let mut world = World::make(setting).await?;
    let mut table = Table::of(during, victim);
    let (trial, mut whole) = world.undisturbed(during).await?;
    told(&trial);
    table.add(trial);
    for number in 0..kills {
        let share = world.random.unit_f64();
        let aim = if during == During::Reorder && number % AIMED_AT_SWAP == AIMED_AT_SWAP - 1 {
            Aim::Swap(whole.mul_f64(0.1 * share))
        } else {
            // Each has its part of the course, and hits it anywhere.
            let place = (number as f64 + share) / kills as f64;
            Aim::After(whole.mul_f64(COURSE * place))
        };
        let trial = world.kill((during, victim), aim, (number, whole)).await;
        let trial = trial.with_context(|| {
            let (during, victim) = (during.name(), victim.name());
            format!("kill {number} of {victim} during {during}")
        })?;
        told(&trial);
        if trial.phase == HAD_ENDED {
            whole = whole.mul_f64(COURSE);
        }
        if !trial.sound() {
            // What is broken must not be counted again by the trials that follow.
            world.keep_aside(number)?;
            world = World::make(setting).await?;
        }
        table.add(trial);
    }
    Ok(table)
}

/// The same of the server without seekscope: what it loses by itself.
pub async fn run_control(
    setting: &Setting,
    kills: u64,
    told: &mut dyn FnMut(&Trial),
) -> Result<Table> {
    let mut world = World::make(setting).await?;
    let mut table = Table::new("primary killed, without seekscope".into());
    for number in 0..kills {
        let began = Instant::now();
        let writers = world.start_writers().await?;
        tokio::time::sleep(Duration::from_millis(500 + world.random.below(2500))).await;
        world.servers.kill(Victim::Primary, turn(number)).await?;
        world.servers.start_again().await?;
        world.servers.until_whole().await?;
        let mut trial = Trial {
            phase: "without seekscope",
            ..Trial::default()
        };
        world.examine(writers, None, &mut trial).await?;
        trial.seconds = began.elapsed().as_secs_f64();
        told(&trial);
        table.add(trial);
    }
    Ok(table)
}

fn turn(number: u64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// When to kill.
#[derive(Debug, Clone, Copy)]
enum Aim {
    /// This long after the start.
    After(Duration),
    /// This long after the swap was recorded as begun.
    Swap(Duration),
}

impl World {
    /// A whole run beside writers, and how long it took.
    async fn undisturbed(&mut self, during: During) -> Result<(Trial, Duration)> {
        let before = self.definitions().await?;
        let writers = self.start_writers().await?;
        let begun = Instant::now();
        let mut run = self.seekscope.begin(during, &self.servers)?;
        let ended = run.end(RUN_LIMIT).await?;
        let took = begun.elapsed();
        ensure!(
            ended.is_success(),
            "undisturbed it ends with {}",
            ended.in_words()
        );
        let mut trial = Trial {
            phase: NOT_KILLED,
            // `bench` and `reorder` have nothing to put back then, and `tune` leaves its documents.
            ending: self.ending(&before).await?,
            ..Trial::default()
        };
        let (victim, signal) = (Victim::Seekscope, Signal::TERM);
        let found = self.recover(during, (victim, signal), &ended, true).await?;
        self.note(found, &mut trial).await?;
        self.examine(writers, Some(during), &mut trial).await?;
        trial.seconds = took.as_secs_f64();
        Ok((trial, took))
    }

    async fn kill(
        &mut self,
        (during, victim): (During, Victim),
        aim: Aim,
        (number, whole): (u64, Duration),
    ) -> Result<Trial> {
        let before = self.definitions().await?;
        let writers = self.start_writers().await?;
        let began = Instant::now();
        let mut run = self.seekscope.begin(during, &self.servers)?;
        self.await_moment(aim, &mut run).await?;
        let phase = self
            .phase(during, &before, &mut run, (began, whole))
            .await?;
        let had_ended = run.has_ended()?;
        let signal = victim.signal(number);
        let ended = self.strike(victim, signal, number, &mut run).await?;
        let mut trial = Trial {
            phase,
            message: ended.message().to_owned(),
            ..Trial::default()
        };
        match ended.status {
            None => trial
                .exit
                .push(format!("it still tried after {RUN_LIMIT:?}")),
            Some(status) => {
                let wrong = wrong_status((during, victim, signal), status, had_ended);
                trial.exit.extend(wrong);
                if status.code().is_some_and(|code| code != 0) {
                    trial.exit.extend(wrong_message(&ended.text));
                }
            }
        }
        trial.code = ended.status.and_then(|status| status.code());
        self.servers.until_whole().await?;
        trial
            .exit
            .extend(wrong_report(&mut self.seekscope, &run.out).await?);
        tokio::time::sleep(BEFORE_RECOVERY).await;
        let resume = number.is_multiple_of(2);
        let found = self.recover(during, (victim, signal), &ended, resume);
        let found = found.await?;
        trial.ending = self.ending(&before).await?;
        self.note(found, &mut trial).await?;
        self.examine(writers, Some(during), &mut trial).await?;
        trial.seconds = began.elapsed().as_secs_f64();
        Ok(trial)
    }

    /// Kills, and waits until the command has ended. A server comes back after some seconds, whatever the command
    /// does then.
    async fn strike(
        &mut self,
        victim: Victim,
        signal: Signal,
        number: u64,
        run: &mut Running,
    ) -> Result<Ended> {
        if victim == Victim::Seekscope {
            run.signal(signal)?;
            return run.end(RUN_LIMIT).await;
        }
        self.servers.kill(victim, turn(number)).await?;
        let away = AWAY_MS.0 + self.random.below(AWAY_MS.1 - AWAY_MS.0);
        let back = async {
            tokio::time::sleep(Duration::from_millis(away)).await;
            self.servers.start_again().await
        };
        let (ended, back) = tokio::join!(run.end(RUN_LIMIT), back);
        back?;
        ended
    }

    async fn recover(
        &mut self,
        during: During,
        (victim, signal): (Victim, Signal),
        ended: &Ended,
        resume: bool,
    ) -> Result<Recovered> {
        let mut recovery = Recovery {
            seekscope: &mut self.seekscope,
            servers: &self.servers,
            during,
            victim,
            signal,
            ended,
            found: Recovered::default(),
        };
        recovery.carry_out(resume).await?;
        Ok(recovery.found)
    }

    async fn note(&self, found: Recovered, trial: &mut Trial) -> Result<()> {
        trial.left.extend(found.left);
        trial.faults.extend(found.faults);
        trial.left.extend(self.changed_settings().await?);
        Ok(())
    }

    async fn await_moment(&self, aim: Aim, run: &mut Running) -> Result<()> {
        match aim {
            Aim::After(delay) => tokio::time::sleep(delay).await,
            Aim::Swap(delay) => {
                let client = self.client().await?;
                while !run.has_ended()? && recorded(&client).await?.as_deref() != Some("swapping") {
                }
                tokio::time::sleep(delay).await;
            }
        }
        Ok(())
    }

    /// What `reorder` has recorded, or that it has not begun, or has ended; of others, the time.
    async fn phase(
        &self,
        during: During,
        before: &Definitions,
        run: &mut Running,
        (began, whole): (Instant, Duration),
    ) -> Result<&'static str> {
        if during != During::Reorder {
            let share = began.elapsed().as_secs_f64() / whole.as_secs_f64();
            return Ok(match share {
                _ if run.has_ended()? => HAD_ENDED,
                ..0.34 => "first third",
                0.34..0.67 => "second third",
                _ => "last third",
            });
        }
        let client = self.client().await?;
        Ok(match recorded(&client).await?.as_deref() {
            Some("copying") => "copying",
            Some("copied") => "copied",
            Some("verified") => "verified",
            Some("indexed") => "indexed",
            Some("swapping") => "swapping",
            Some(_) => "another phase",
            None if run.has_ended()? => HAD_ENDED,
            None if self.definitions().await?.replaced(before) => "swapped",
            None => "beginning",
        })
    }

    async fn ending(&self, before: &Definitions) -> Result<Ending> {
        Ok(match self.definitions().await?.replaced(before) {
            true => Ending::Reordered,
            false => Ending::AsBefore,
        })
    }
}
