//! What `seekscope tune` did: settings, trials, duels, and the conclusions from them.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// The value of a setting, as people write it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum KnobValue {
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
}

impl KnobValue {
    /// Returns the value as a number; `None` if it is not one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Bool(_) | Self::Text(_) => None,
        }
    }
}

impl fmt::Display for KnobValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "{value}"),
        }
    }
}

/// Values of knobs by name.
pub type KnobValues = BTreeMap<String, KnobValue>;

/// What a trial was run for.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TrialPurpose {
    /// The settings found at the start, in pairs before the search: how noisy is this?
    Baseline,
    /// A proposal of the optimiser, or a preset.
    Search,
    /// The settings found at the start, now and then during the search: does it drift?
    Sentinel,
    /// One arm of a block of the final duels.
    Duel,
}

impl TrialPurpose {
    /// Returns the name stored in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// How a trial ended.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TrialStatus {
    Measured,
    /// Ended early because it could not win; its value is an extrapolation.
    EndedEarly,
    /// The server did not start, the workload failed or hung, or the setting did not take effect.
    Failed,
    /// Measured, but a constraint was not met.
    ConstraintMissed,
}

impl TrialStatus {
    /// Returns the name stored in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One run of one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneTrial {
    /// Number from 1, in the order in which the trials were run.
    pub number: u64,
    pub purpose: TrialPurpose,
    /// "baseline", "best", "minimal", or the name of a preset; empty for a proposal.
    pub arm: String,
    /// The source of the proposal: "default", "preset", "design", "model", "parzen", "screening", "retest";
    /// otherwise empty.
    pub origin: String,
    /// Number of the duel's block, from 1.
    pub block: Option<u32>,
    /// Seed of the workload: equal within a block.
    pub seed: u64,
    pub values: KnobValues,
    pub status: TrialStatus,
    /// The metric; `None` if nothing was measured.
    pub value: Option<f64>,
    /// The metric over the first 30 % and 60 % of the window; `None` if it was not checked.
    #[serde(default)]
    pub partial: [Option<f64>; 2],
    /// Variance in units of an ordinary run's: 2 if it was not steady or ended early.
    pub noise: f64,
    /// Why it failed or what it missed; empty otherwise.
    pub reason: String,
    /// Everything else that was measured, by name: `p99_ms`, `throughput_per_s`, `server_cpu_us_per_op`.
    pub figures: BTreeMap<String, f64>,
    /// Wall-clock time since 1970, ms.
    pub started_unix_ms: u64,
    /// Time for restoring data, applying the setting and starting the server; and for the workload with its
    /// warm-up. Seconds.
    pub prepare_s: f64,
    pub measure_s: f64,
    /// What was expected of the best setting after this trial, with its 95 % interval under the model.
    pub best_so_far: Option<Expected>,
}

/// A figure with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Expected {
    #[schemars(with = "Option<f64>")]
    pub value: f64,
    #[schemars(with = "Option<f64>")]
    pub low: f64,
    #[schemars(with = "Option<f64>")]
    pub high: f64,
}

/// A knob as it was tuned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TunedKnob {
    pub name: String,
    /// Its value at the start.
    pub baseline: KnobValue,
    /// Its values in words, e.g. "3 to 80, logarithmic".
    pub range: String,
    /// Whether a slice over it is drawn on a logarithmic axis.
    pub logarithmic: bool,
    /// "R" running server, "H" host, "S" restart, "L" data loaded again.
    pub change: String,
    /// "P" performance only, "M" memory, "D" durability, "A" availability.
    pub risk: String,
    /// How it is set, in words.
    pub how: String,
}

/// Statistics of runs of the settings found at the start: those before the search; for the drift, also those during
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuneNoise {
    /// Number of runs.
    pub runs: u64,
    /// Standard deviation of the runs divided by their mean.
    #[schemars(with = "Option<f64>")]
    pub coefficient_of_variation: f64,
    /// Standard deviation of the logarithm of a pair's ratio.
    #[schemars(with = "Option<f64>")]
    pub pair_deviation: f64,
    /// Change of the metric per hour of wall-clock time, as a share; `None` if the runs span too little time to
    /// tell it from noise.
    pub drift_per_hour: Option<f64>,
    /// The most pairs of runs of a duel (`--pairs`).
    #[serde(default = "duel_pairs_default")]
    pub duel_pairs: u64,
    /// The smallest gain that this many pairs are likely (80 %) to show, as a share; `None` if the runs are too few to
    /// tell, or do not differ at all.
    pub detectable_gain: Option<f64>,
}

/// What older runs, which do not keep it, assumed.
fn duel_pairs_default() -> u64 {
    24
}

/// The verdict of a duel or of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TuneVerdict {
    /// A gain was shown.
    Better,
    /// A gain of 2 % or more is improbable.
    NotBetter,
    /// It could be either; more pairs would decide.
    Unresolved,
}

/// One setting against another in fresh, interleaved runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneDuel {
    /// Arms: "best", "minimal" or a preset's name; and "baseline" or a preset's name.
    pub candidate: String,
    pub against: String,
    pub verdict: TuneVerdict,
    pub pairs: u64,
    /// Ratio of the candidate to the other in the direction of the goal (above 1 is better), with its 95 %
    /// interval; all three are 0 for fewer than two pairs.
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    /// Standard deviation of the logarithm of a pair's ratio.
    pub deviation: f64,
    /// Wilcoxon's signed-rank test, one-sided; `None` for fewer than five pairs.
    pub wilcoxon_p: Option<f64>,
    /// Student's one-sided p, corrected for all comparisons of the session (Holm).
    pub holm_p: Option<f64>,
    /// The ratio that the search had promised; `None` if it was not involved.
    pub promised: Option<f64>,
    /// The worst pair's ratio.
    pub worst: f64,
    /// Runs of the candidate that failed or missed a constraint: if there is any, it is not better.
    pub failed: u64,
}

/// A share of the variance, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    #[schemars(with = "Option<f64>")]
    pub share: f64,
    #[schemars(with = "Option<f64>")]
    pub low: f64,
    #[schemars(with = "Option<f64>")]
    pub high: f64,
}

/// The importance of one knob.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnobImportance {
    pub knob: String,
    /// Share of what the knob does whatever the values of the others.
    pub alone: Share,
    /// Share that also includes what the knob does together with others.
    pub total: Share,
    /// Whether the total share can be distinguished from nothing (1 % or less); if false, it may be nothing.
    pub distinguishable: bool,
}

/// What two knobs do together beyond what each does alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairImportance {
    pub knobs: [String; 2],
    pub together: Share,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Importance {
    /// Sorted by importance, the most important first.
    pub knobs: Vec<KnobImportance>,
    pub pairs: Vec<PairImportance>,
}

/// One knob moved, all others as recommended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slice {
    pub knob: String,
    /// The points in the order of the range, with special values first.
    pub points: Vec<SlicePoint>,
    /// Mean of each setting that was run, whatever its other knobs were.
    pub measured: Vec<Measured>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlicePoint {
    pub at: KnobValue,
    pub expected: f64,
    /// 95 % interval of `expected` under the model.
    pub low: f64,
    pub high: f64,
    /// Probability that such a setting works.
    pub works: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub at: KnobValue,
    /// `None` for a setting that failed.
    pub value: Option<f64>,
}

/// Two knobs moved, all others as recommended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    pub knobs: [String; 2],
    pub at: [Vec<KnobValue>; 2],
    /// `expected[i][j]` is for the first knob's value `i` and the second's `j`.
    pub expected: Vec<Vec<f64>>,
}

/// The best setting, with as many knobs as possible left at their original values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MinimalChange {
    /// All knobs of that setting.
    pub values: KnobValues,
    /// Knobs that were returned to their original values, the cheapest first.
    pub reset: Vec<String>,
    /// Knobs that differ from their original values.
    pub changed: Vec<String>,
    /// Loss compared with the best setting according to the model, as a share: 0.02 is 2 % worse.
    #[schemars(with = "Option<f64>")]
    pub loss: f64,
    /// Lower bound of the 95 % interval of `loss`.
    #[schemars(with = "Option<f64>")]
    pub loss_low: f64,
    /// Upper bound of the 95 % interval of `loss`.
    #[schemars(with = "Option<f64>")]
    pub loss_high: f64,
}

/// Texts to be copied for making the recommended change and for undoing it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TuneExports {
    /// The part of `mongod.conf` that changes (YAML); empty if nothing there does.
    pub mongod_conf: String,
    /// `db.adminCommand(…)` lines for a running server.
    pub set_parameter: Vec<String>,
    /// Commands for the host's shell, and start options of servers without a configuration file.
    pub shell: Vec<String>,
    /// The same part of `mongod.conf` with the original values.
    pub undo_mongod_conf: String,
    /// The lines of `set_parameter` with the original values.
    pub undo_set_parameter: Vec<String>,
    /// The commands and options of `shell` with the original values.
    pub undo_shell: Vec<String>,
    /// Risks of the change, one line for each knob that affects more than performance.
    pub risks: Vec<String>,
}

/// How the session's time was spent, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TuneLedger {
    #[schemars(range(min = 0))]
    pub prepare_s: f64,
    #[schemars(range(min = 0))]
    pub measure_s: f64,
    /// Time of the tuner itself, s.
    #[schemars(range(min = 0))]
    pub think_s: f64,
    #[schemars(range(min = 0))]
    pub total_s: f64,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TuneRecord {
    /// What is run, e.g. "ycsb:a" or a command.
    pub workload: String,
    /// e.g. "throughput", with its unit ("per_s", "ms", or empty) and direction.
    pub metric: String,
    pub unit: String,
    pub maximise: bool,
    /// e.g. "p99_ms <= 20".
    pub constraints: Vec<String>,
    pub seed: u64,
    pub knobs: Vec<TunedKnob>,
    /// Knobs of the catalogue that were not tuned, with the reason.
    pub left_out: Vec<(String, String)>,
    /// Knobs that are tuned, with what users should know: what they risk, what bounds them, and what runs of
    /// this length cannot show about them.
    pub cautions: Vec<(String, String)>,
    /// The trials, which are also in `trials.parquet`.
    pub trials: Vec<TuneTrial>,
    pub noise: Option<TuneNoise>,
    /// The search's best setting, and what the search expected of it.
    pub best: KnobValues,
    pub expected: Option<Expected>,
    pub minimal: Option<MinimalChange>,
    pub duels: Vec<TuneDuel>,
    /// The recommended setting: the minimal change if it held, otherwise the best; empty means change nothing.
    pub recommended: KnobValues,
    /// Verdict on `recommended`, or on the best if there is no gain; `None` if no duel was fought.
    pub verdict: Option<TuneVerdict>,
    pub importance: Option<Importance>,
    pub slices: Vec<Slice>,
    pub heat_map: Option<HeatMap>,
    pub exports: TuneExports,
    pub ledger: TuneLedger,
    /// Whether every setting was restored and verified by reading it back; `None` if nothing had been changed.
    pub restored: Option<bool>,
    /// Whether somebody else had set some of them meanwhile, which was left as it is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub left_to_others: bool,
    /// The database in which the workload's documents are left; `None` where nothing is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_database: Option<String>,
}
