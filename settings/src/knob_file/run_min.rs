//! Defines how long a run must be for a knob to show in it: what acts once a minute has no effect in a run of
//! 20 s.

use serde::Deserialize;

/// The shortest run in which a knob shows.
#[derive(Debug, Clone, PartialEq)]
pub enum RunMin {
    /// A number of seconds, whatever is set.
    Seconds(f64),
    /// A multiple of the value of a knob, which counts units of `unit_s` seconds. The knob may be the one
    /// that needs the run.
    Times { of: String, times: f64, unit_s: f64 },
}

/// The written form: `{ s = 30 }` or `{ of = "checkpoint_seconds", times = 2 }`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunMinText {
    s: Option<f64>,
    of: Option<String>,
    times: Option<f64>,
    unit_s: Option<f64>,
}

impl RunMinText {
    pub(super) fn checked(self) -> Result<RunMin, String> {
        let numbers = [self.s, self.times, self.unit_s];
        let is_usable = |number: f64| number.is_finite() && number > 0.0;
        if !numbers.into_iter().flatten().all(is_usable) {
            return Err("the numbers of `run_min` must be above zero".into());
        }
        match (self.s, self.of, self.times, self.unit_s) {
            (Some(s), None, None, None) => Ok(RunMin::Seconds(s)),
            (None, Some(of), times, unit_s) => Ok(RunMin::Times {
                of,
                times: times.unwrap_or(1.0),
                unit_s: unit_s.unwrap_or(1.0),
            }),
            _ => Err("`run_min` takes either `s`, or `of` with `times` and `unit_s`".into()),
        }
    }
}
