//! Finds knobs that no run of the session can judge, because it is over before they act.

use std::time::Duration;

use super::{Discovered, ServerReplies, Surroundings, current};
use crate::knob_file::{KnobEntry, KnobFile, RunMin};

/// How long the runs of a session are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs<'a> {
    /// `None` if it is not known before they are run.
    pub length: Option<Duration>,
    /// How to make them longer, or how long they are, as part of a sentence.
    pub remedy: &'a str,
}

impl Discovered {
    /// Converts what knobs need of a run to seconds, and finds those whose need is not met. The range of a
    /// knob that acts once in this many seconds ends where it would act in no run, except for its current
    /// value.
    pub(super) fn judge_runs(
        &mut self,
        file: &KnobFile,
        replies: &ServerReplies,
        surroundings: &Surroundings<'_>,
    ) {
        for place in 0..self.entries.len() {
            let entry = &self.entries[place];
            let Some(least) = entry.run_min.clone() else {
                continue;
            };
            let (needed_s, because) = match least {
                RunMin::Seconds(s) => (Some(s), String::new()),
                RunMin::Times { of, times, unit_s } => {
                    let value = self.value_of(&of, file, replies, surroundings);
                    let needed_s = value.map(|value| value * unit_s * times);
                    (needed_s, because(&of, times))
                }
            };
            let name = entry.knob.name.clone();
            let entry = &mut self.entries[place];
            match &entry.run_min {
                Some(RunMin::Times { of, unit_s, .. }) if *of == name => {
                    let length = surroundings.runs.and_then(|runs| runs.length);
                    let unit_s = *unit_s;
                    if let Some(length) = length {
                        end_within(entry, length.as_secs_f64() / unit_s);
                    }
                }
                _ => entry.run_min = needed_s.map(RunMin::Seconds).or(entry.run_min.take()),
            }
            let why = surroundings
                .runs
                .and_then(|runs| too_short(&runs, needed_s, &because));
            self.short_runs.extend(why.map(|why| (name, why)));
        }
    }

    /// Returns the server's value, whether or not it may be changed.
    fn value_of(
        &self,
        name: &str,
        file: &KnobFile,
        replies: &ServerReplies,
        surroundings: &Surroundings<'_>,
    ) -> Option<f64> {
        let tuned = self.entries.iter().find(|entry| entry.knob.name == name);
        if let Some(entry) = tuned {
            return entry.knob.default.number();
        }
        let mut rows = (file.knobs.iter())
            .filter(|entry| entry.knob.name == name && entry.versions.include(self.version));
        rows.find_map(|row| {
            let (value, _) = current::current(&mut row.clone(), replies, surroundings).ok()?;
            value.number()
        })
    }
}

/// Returns a text like "2 × checkpoint_seconds".
fn because(of: &str, times: f64) -> String {
    match times {
        1.0 => format!(" ({of})"),
        times => format!(" ({times} × {of})"),
    }
}

/// Returns why runs cannot judge a knob that needs more than this many seconds; `None` if they can.
fn too_short(runs: &Runs<'_>, needed_s: Option<f64>, because: &str) -> Option<String> {
    let remedy = runs.remedy;
    let Some(needed_s) = needed_s else {
        return Some(format!(
            "how long a run must be for it to show is not known{because}"
        ));
    };
    let shows = format!("it shows in runs of more than {needed_s:.0} s{because}");
    match runs.length.map(|length| length.as_secs_f64()) {
        Some(length_s) if length_s > needed_s => None,
        Some(length_s) => Some(format!("{shows}, and these take {length_s:.0} s; {remedy}")),
        None => Some(format!(
            "{shows}, and how long these take is not known; {remedy}"
        )),
    }
}

fn end_within(entry: &mut KnobEntry, max: f64) {
    let current = entry.knob.default.number();
    super::fit::cap(entry, current.map_or(max, |current| current.max(max)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_long_enough_only_if_they_are_longer() {
        let runs = |seconds: u64| Runs {
            length: Some(Duration::from_secs(seconds)),
            remedy: "--trial-for makes them longer",
        };
        assert_eq!(too_short(&runs(121), Some(120.0), ""), None);
        let why = too_short(&runs(120), Some(120.0), &because("interval", 2.0)).unwrap();
        assert_eq!(
            why,
            "it shows in runs of more than 120 s (2 × interval), and these take 120 s; \
             --trial-for makes them longer"
        );
        assert!(too_short(&runs(120), None, "").is_some());
        let unknown = Runs {
            length: None,
            remedy: "--trial-for says it",
        };
        let why = too_short(&unknown, Some(30.0), "").unwrap();
        assert!(why.ends_with("is not known; --trial-for says it"), "{why}");
    }
}
