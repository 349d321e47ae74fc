//! Defines phases, their roles, and when and how these send.

use std::time::Duration;

use seekscope_run::units::parse_duration;
use serde::Deserialize;

use super::Operation;
use super::short_form::{ShortForm, deserialize_short_form, only};

/// Roles that run at the same time. The next phase begins when all have ended.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    pub name: String,
    /// Pause before the phase.
    #[serde(default)]
    pub pause: Time,
    /// Duration, for roles without an end of their own.
    pub duration: Option<Time>,
    #[serde(default)]
    pub roles: Vec<Role>,
}

/// Virtual users that do the same.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    pub name: String,
    /// Transactions in flight at once.
    #[serde(default = "one")]
    pub users: usize,
    #[serde(default)]
    pub arrivals: Arrivals,
    pub duration: Option<Time>,
    pub transactions: Option<u64>,
    /// Ends when all other roles of the phase have ended.
    #[serde(default)]
    pub background: bool,
    /// Time after which a request without an answer has failed.
    pub timeout: Option<Time>,
    #[serde(default)]
    pub errors: ErrorPolicy,
    pub operations: Vec<Operation>,
}

/// When transactions start.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Arrivals {
    /// Each user starts the next when its last one has ended.
    #[default]
    Closed,
    Constant(f64),
    Poisson(f64),
    Ramp(Ramp),
    /// A share of the rate that another phase's role reached.
    Share(RateShare),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    pub from: f64,
    pub to: f64,
    pub over: Time,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateShare {
    /// Percentage.
    pub percent: f64,
    /// Name of an earlier phase.
    pub phase: String,
    /// A role of that phase; needed if it has several.
    pub role: Option<String>,
    /// Poisson arrivals rather than evenly spaced ones.
    #[serde(default)]
    pub poisson: bool,
}

/// Arrivals written as a table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArrivalsTable {
    constant: Option<f64>,
    poisson: Option<f64>,
    ramp: Option<Ramp>,
    share: Option<RateShare>,
}

/// Highest rate that can be requested, per second.
const RATE_MAX: f64 = 1e7;

impl ShortForm for Arrivals {
    type Table = ArrivalsTable;
    const ALLOWED: &'static str = "write \"closed\" or one of { constant = PER_SECOND }, \
        { poisson = PER_SECOND }, { ramp = { from, to, over } }, { share = { percent, phase, role, poisson } }";

    fn from_scalar(scalar: toml::Value) -> Result<Self, String> {
        match scalar.as_str() {
            Some("closed") => Ok(Self::Closed),
            _ => Err(Self::ALLOWED.into()),
        }
    }

    fn from_table(table: ArrivalsTable) -> Result<Self, String> {
        let given = [
            table.constant.map(Self::Constant),
            table.poisson.map(Self::Poisson),
            table.ramp.map(Self::Ramp),
            table.share.map(Self::Share),
        ];
        let found = only(given, Self::ALLOWED)?;
        let rates = match &found {
            Self::Closed => vec![],
            Self::Constant(rate) | Self::Poisson(rate) => vec![*rate],
            Self::Ramp(ramp) => vec![ramp.from, ramp.to],
            Self::Share(share) => vec![share.percent],
        };
        match rates
            .iter()
            .find(|rate| !(rate.is_finite() && **rate > 0.0 && **rate <= RATE_MAX))
        {
            Some(rate) => Err(format!("{rate} is not a rate above 0 and up to {RATE_MAX}")),
            None => Ok(found),
        }
    }
}

/// Reactions to failures, by their class.
#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct ErrorPolicy {
    /// Reaction for classes that are not named.
    pub default: Reaction,
    /// A lost or refused connection.
    pub connection: Option<Reaction>,
    pub timeout: Option<Reaction>,
    pub duplicate: Option<Reaction>,
    /// The member is not the primary, or a conflict that the server reports as transient.
    pub transient: Option<Reaction>,
    pub write_concern: Option<Reaction>,
    pub unauthorised: Option<Reaction>,
    /// The server's disk is full.
    pub no_space: Option<Reaction>,
    /// Other errors of the server.
    pub server: Option<Reaction>,
    /// No document found where there should be one.
    pub not_found: Option<Reaction>,
}

/// The reaction to a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reaction {
    /// Counts as an error; the user continues with its next transaction.
    #[default]
    Count,
    /// Counts as done.
    Ignore,
    /// Repeats the whole transaction up to this many times, and each failure counts.
    Retry(u32),
    /// Ends the role.
    Stop,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReactionTable {
    retry: u32,
}

impl ShortForm for Reaction {
    type Table = ReactionTable;
    const ALLOWED: &'static str = "write \"count\", \"ignore\", \"stop\" or { retry = TIMES }";

    fn from_scalar(scalar: toml::Value) -> Result<Self, String> {
        match scalar.as_str() {
            Some("count") => Ok(Self::Count),
            Some("ignore") => Ok(Self::Ignore),
            Some("stop") => Ok(Self::Stop),
            _ => Err(Self::ALLOWED.into()),
        }
    }

    fn from_table(table: ReactionTable) -> Result<Self, String> {
        if table.retry > 1_000 {
            return Err("at most 1000 retries are possible".into());
        }
        Ok(Self::Retry(table.retry))
    }
}

deserialize_short_form!(Arrivals, Reaction);

/// A duration, written as "30s" or "250ms".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct Time(pub Duration);

impl TryFrom<String> for Time {
    type Error = seekscope_run::units::UnitError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        parse_duration(&text).map(Self)
    }
}

fn one() -> usize {
    1
}
