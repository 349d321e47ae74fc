//! Sets configurations on one server, or on the members of a replica set in rolling order.
//!
//! A member is restarted only while all others are up, and the primary last, after it has stepped down: there are never
//! two members down, and the set is without a primary only for an election.

use std::time::{Duration, Instant};

use mongodb::bson::doc;
use seekscope_run::MemberState;
use seekscope_server::{Server, ServerError};
use seekscope_tune::space::Configuration;

use super::{Applied, Applier, ApplyError, Restored, Waiting};

const PAUSE: Duration = Duration::from_millis(200);
/// Time limit for the others to be up before a member is restarted, and for an election.
const SET_LIMIT: Duration = Duration::from_secs(300);
/// How long a primary that has stepped down does not stand for election, s: longer than its restart.
const STEPPED_DOWN_S: i32 = 120;
/// How long it waits for a secondary to have all its writes before it gives up, s.
const CATCH_UP_S: i32 = 30;

/// Sets configurations on the servers of one session.
#[derive(Debug)]
pub struct Appliers {
    pub(super) members: Vec<Member>,
    waiting: Waiting,
}

#[derive(Debug)]
pub(super) struct Member {
    /// Its name in the set, `host:port`; empty for a server that is set alone.
    pub(super) name: String,
    pub(super) applier: Applier,
}

impl Member {
    /// Returns what it is to its set; `None` if it does not answer.
    async fn state(&self) -> Option<MemberState> {
        let hello = self.applier.server()?.hello().await;
        hello.ok().map(|hello| hello.state)
    }

    async fn is_up(&self) -> bool {
        let state = self.state().await;
        matches!(state, Some(MemberState::Primary | MemberState::Secondary))
    }

    /// Returns the part of the configuration that is set on it: what the host has once is set once.
    pub(super) fn part_of(&self, values: &Configuration) -> Configuration {
        let own = values.0.iter().filter(|(knob, _)| self.applier.has(knob));
        Configuration(own.map(|(k, v)| (k.clone(), v.clone())).collect())
    }

    fn named(&self, knob: String) -> String {
        match self.name.is_empty() {
            true => knob,
            false => format!("{}: {knob}", self.name),
        }
    }
}

impl From<Applier> for Appliers {
    fn from(applier: Applier) -> Self {
        Self::of_set(vec![(String::new(), applier)])
    }
}

impl Appliers {
    /// Joins those of the members of a set, by their names. Those that connect to servers connect to one member each.
    pub fn of_set(members: Vec<(String, Applier)>) -> Self {
        let waiting = Waiting::default();
        let members = members.into_iter().map(|(name, mut applier)| {
            applier.waiting = waiting.clone();
            Member { name, applier }
        });
        Self {
            members: members.collect(),
            waiting,
        }
    }

    /// Returns what they wait for, which are restarts and elections at most.
    pub fn waiting(&self) -> Waiting {
        self.waiting.clone()
    }

    /// Returns whether a knob was changed and is not known to be as it was.
    pub fn is_outstanding(&self) -> bool {
        let mut members = self.members.iter();
        members.any(|member| !member.applier.originals().outstanding().is_empty())
    }

    /// Returns whether something was changed and everything was put back.
    pub fn is_restored(&self) -> bool {
        let mut restored = self.members.iter().map(|m| m.applier.originals().restored);
        !self.is_outstanding() && restored.any(|restored| restored)
    }

    /// Returns whether there are knobs that need restarts.
    pub fn restarts(&self) -> bool {
        self.members.iter().any(|member| member.applier.restarts())
    }

    /// Tries the right to set, on each server, as [`Applier::try_right`] does.
    ///
    /// # Errors
    /// Returns an error if the login lacks the right or a server does not answer.
    pub async fn try_right(&self) -> Result<(), ApplyError> {
        for member in &self.members {
            member.applier.try_right().await?;
        }
        Ok(())
    }

    /// Restarts each server once with its configuration as it is, if there are knobs that need restarts.
    ///
    /// # Errors
    /// Returns an error if no other process answers afterwards, or if a member cannot be spared.
    pub async fn try_restart(&mut self) -> Result<bool, ApplyError> {
        let mut tried = false;
        for n in self.rolling_order().await {
            if self.members[n].applier.restarts() {
                self.spare(n).await?;
                tried |= self.members[n].applier.try_restart().await?;
            }
        }
        self.settle(tried).await?;
        Ok(tried)
    }

    /// Sets all knobs on each server and reads them back, as [`Applier::apply`] does.
    ///
    /// # Errors
    /// Returns an error at the first knob that cannot be set, or if a member cannot be spared; what came before is set.
    pub async fn apply(&mut self, values: &Configuration) -> Result<Applied, ApplyError> {
        let mut unknown = values.0.keys();
        if let Some(knob) = unknown.find(|knob| self.members.iter().all(|m| !m.applier.has(knob))) {
            return Err(ApplyError::UnknownKnob(knob.clone()));
        }
        let mut applied = Applied::default();
        for n in self.rolling_order().await {
            let part = self.members[n].part_of(values);
            if self.members[n].applier.needs_restart(&part)? {
                self.spare(n).await?;
            }
            let one = self.members[n].applier.apply(&part).await?;
            applied.restarted |= one.restarted;
            applied.local.extend(one.local);
            applied.environment.extend(one.environment);
        }
        self.settle(applied.restarted).await?;
        Ok(applied)
    }

    /// Starts a server that is gone, as [`Applier::recover`] does; of a set, each member that does not answer.
    pub async fn recover(&mut self) {
        for member in &mut self.members {
            if member.name.is_empty() || member.state().await.is_none() {
                member.applier.recover().await;
            }
        }
    }

    /// Sets what was changed to its original on each server and reads it back; continues after failures.
    pub async fn restore(&mut self) -> Restored {
        let mut restored = Restored::default();
        for n in self.rolling_order().await {
            let spared = match self.members[n].applier.restore_needs_restart() {
                true => self.spare(n).await,
                false => Ok(()),
            };
            let member = &mut self.members[n];
            let one = match spared {
                Ok(()) => member.applier.restore().await,
                Err(error) => member.applier.not_restored(&error.to_string()),
            };
            let named = (one.knobs.into_iter()).map(|(knob, result)| (member.named(knob), result));
            restored.knobs.extend(named);
            let put_back = one.put_back.into_iter();
            let named = put_back.map(|(knob, words)| (member.named(knob), words));
            restored.put_back.extend(named);
            restored.silent.extend(one.silent);
            restored.not_noted = restored.not_noted.or(one.not_noted);
        }
        // Whether a primary is elected in time changes nothing of what was put back.
        let _ = self.settle(self.restarts()).await;
        restored
    }

    fn is_set(&self) -> bool {
        self.members.len() > 1
    }

    /// Returns the members in the order in which they are set: one that is down already, the secondaries, the primary.
    async fn rolling_order(&self) -> Vec<usize> {
        let mut order: Vec<(u8, usize)> = Vec::new();
        for (n, member) in self.members.iter().enumerate() {
            let turn = match self.is_set() {
                true => turn(member.state().await),
                false => 0,
            };
            order.push((turn, n));
        }
        order.sort_unstable();
        order.into_iter().map(|(_, n)| n).collect()
    }

    /// Waits until the set can spare a member: all others are up, and another one is the primary.
    async fn spare(&self, n: usize) -> Result<(), ApplyError> {
        if !self.is_set() {
            return Ok(());
        }
        self.wait_for_others(n).await?;
        let member = &self.members[n];
        if member.state().await != Some(MemberState::Primary) {
            return Ok(());
        }
        let failed = |why: String| ApplyError::NotSpared {
            member: member.name.clone(),
            why,
        };
        let Some(server) = member.applier.server() else {
            return Ok(());
        };
        let _wait = self.waiting.begin("the primary to step down");
        step_down(server).await.map_err(failed)?;
        self.wait_for_primary().await.map_err(failed)
    }

    /// Waits until a set from which members were restarted has them back and has a primary.
    async fn settle(&self, restarted: bool) -> Result<(), ApplyError> {
        if !self.is_set() || !restarted {
            return Ok(());
        }
        self.wait_for_others(self.members.len()).await?;
        let primary = self.wait_for_primary().await;
        primary.map_err(|why| ApplyError::NoPrimary { why })
    }

    /// Waits until all members but one are up.
    async fn wait_for_others(&self, n: usize) -> Result<(), ApplyError> {
        let _wait = self.waiting.begin("the other members of the set");
        let began = Instant::now();
        let others = self.members.iter().enumerate().filter(|(m, _)| *m != n);
        for (_, other) in others {
            while !other.is_up().await {
                if began.elapsed() >= SET_LIMIT {
                    return Err(ApplyError::MemberDown {
                        member: other.name.clone(),
                        limit_s: SET_LIMIT.as_secs(),
                    });
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    async fn wait_for_primary(&self) -> Result<(), String> {
        let began = Instant::now();
        loop {
            for member in &self.members {
                if member.state().await == Some(MemberState::Primary) {
                    return Ok(());
                }
            }
            if began.elapsed() >= SET_LIMIT {
                return Err(format!(
                    "no member has become primary within {} s",
                    SET_LIMIT.as_secs()
                ));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Returns the place of a member in the rolling order. One that is down needs no other to be restarted first.
fn turn(state: Option<MemberState>) -> u8 {
    match state {
        None => 0,
        Some(MemberState::Primary) => 2,
        Some(_) => 1,
    }
}

/// Makes a primary hand over to another member; it refuses while none has all its writes.
async fn step_down(server: &Server) -> Result<(), String> {
    let command =
        doc! { "replSetStepDown": STEPPED_DOWN_S, "secondaryCatchUpPeriodSecs": CATCH_UP_S };
    let began = Instant::now();
    loop {
        // The reply may be lost with the connection, and someone else may have been elected meanwhile.
        let error = server.command("admin", command.clone()).await.err();
        let hello = server.hello().await;
        if hello.is_ok_and(|hello| hello.state != MemberState::Primary) {
            return Ok(());
        }
        if began.elapsed() >= SET_LIMIT || matches!(error, Some(ServerError::NotAuthorised { .. }))
        {
            let why = error.map_or_else(|| "it is still the primary".into(), |e| e.to_string());
            return Err(format!("it does not step down: {why}"));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_primary_is_restarted_last_and_what_is_down_first() {
        let states = [
            Some(MemberState::Primary),
            Some(MemberState::Secondary),
            None,
            Some(MemberState::Other),
        ];
        let mut order: Vec<(u8, usize)> = states.map(turn).into_iter().zip(0..).collect();
        order.sort_unstable();
        let order: Vec<usize> = order.into_iter().map(|(_, n)| n).collect();
        assert_eq!(order, [2, 1, 3, 0]);
    }
}
