//! What is to be improved, and what must hold meanwhile: names of figures, directions, units.

use std::collections::BTreeMap;

use anyhow::Result;
use seekscope_run::units::{parse_bytes, parse_duration};
use seekscope_tune::optimiser::Goal;

use crate::exit::Usage;

/// Figures of a run by name: what [`Metric`] and [`Constraint`] ask for.
pub type Figures = BTreeMap<String, f64>;

/// Name as typed, name in the figures, unit, and the better direction by default.
const KNOWN: [(&str, &str, &str, Goal); 9] = [
    ("throughput", "throughput_per_s", "per_s", Goal::Maximise),
    ("p50", "p50_ms", "ms", Goal::Minimise),
    ("p99", "p99_ms", "ms", Goal::Minimise),
    ("p999", "p999_ms", "ms", Goal::Minimise),
    (
        "cpu_us_per_op",
        "server_cpu_us_per_op",
        "us",
        Goal::Minimise,
    ),
    (
        "read_bytes_per_op",
        "server_read_bytes_per_op",
        "bytes",
        Goal::Minimise,
    ),
    (
        "write_bytes_per_op",
        "server_write_bytes_per_op",
        "bytes",
        Goal::Minimise,
    ),
    ("memory", "server_rss_bytes", "bytes", Goal::Minimise),
    ("seconds", "seconds", "s", Goal::Minimise),
];
/// Prefix of a path into the JSON that a command prints.
const JSON: &str = "json:";
/// Prefix of the name of an operation of the workload.
const OF_OPERATION: &str = "throughput:";

/// What is measured in each run.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The name as typed.
    pub name: String,
    /// Key in [`Figures`].
    pub figure: String,
    pub unit: &'static str,
    pub goal: Goal,
}

impl Metric {
    /// Parses a metric. `direction`: the choice of --minimize and --maximize, required for a command's own
    /// figure.
    pub fn parse(text: &str, direction: Option<Goal>) -> Result<Self> {
        let (figure, unit, usual) = figure_of(text)?;
        let Some(goal) = direction.or(usual) else {
            let why = "say which way is better: --maximize or --minimize";
            return Err(Usage(format!("--metric {text}: {why}")).into());
        };
        Ok(Self {
            name: text.into(),
            figure,
            unit,
            goal,
        })
    }

    /// Returns the metric's value, or why there is none.
    pub fn of(&self, figures: &Figures) -> Result<f64, String> {
        match figure_in(figures, &self.figure) {
            None => Err(self.missing(figures)),
            Some(value) if value.is_finite() && value > 0.0 => Ok(value),
            Some(value) => Err(format!("{} is {value}, not a positive number", self.name)),
        }
    }

    fn missing(&self, figures: &Figures) -> String {
        let mut why = format!("the run has no figure {}", self.name);
        if self.name.starts_with(OF_OPERATION) {
            let all = figures.keys().filter_map(|name| operation_in(name));
            let names: Vec<&str> = all.collect();
            why.push_str(&match names[..] {
                [] => "; it tells nothing of single operations".into(),
                _ => format!("; its operations are {}", names.join(", ")),
            });
        }
        why
    }
}

/// Returns a figure by its name. Operations of workloads may be named in other letters: YCSB's are in capitals.
fn figure_in(figures: &Figures, name: &str) -> Option<f64> {
    let mut alike = figures
        .iter()
        .filter(|(key, _)| key.eq_ignore_ascii_case(name));
    let exact = figures.get(name).copied();
    exact.or_else(|| alike.next().map(|(_, value)| *value))
}

/// Returns the name in [`Figures`] for the rate of one operation of the workload.
pub fn rate_of_operation(name: &str) -> String {
    format!("{name}{OPERATION_RATE}")
}

const OPERATION_RATE: &str = ":throughput_per_s";

/// Returns the operation whose rate a figure is.
pub fn operation_in(figure: &str) -> Option<&str> {
    figure.strip_suffix(OPERATION_RATE)
}

fn figure_of(text: &str) -> Result<(String, &'static str, Option<Goal>)> {
    if let Some((_, figure, unit, goal)) = KNOWN.iter().find(|(name, ..)| *name == text) {
        return Ok(((*figure).into(), unit, Some(*goal)));
    }
    if let Some(operation) = text.strip_prefix(OF_OPERATION).filter(|o| !o.is_empty()) {
        let figure = rate_of_operation(operation);
        return Ok((figure, "per_s", Some(Goal::Maximise)));
    }
    if let Some(path) = text.strip_prefix(JSON) {
        if !path.starts_with('/') {
            let why = "a JSON pointer begins with a slash, such as json:/summary/rate";
            return Err(Usage(format!("{text}: {why}")).into());
        }
        return Ok((text.into(), "", None));
    }
    if text == "output" {
        return Ok((text.into(), "", None));
    }
    let names: Vec<&str> = KNOWN.iter().map(|(name, ..)| *name).collect();
    Err(Usage(format!(
        "there is no metric {text}; there are {}, throughput:OPERATION (of the workload's), output (the last \
         number that --command prints) and json:/path (into the JSON that it prints)",
        names.join(", ")
    ))
    .into())
}

/// A figure that must not be above or below a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    /// The constraint as typed.
    pub text: String,
    pub figure: String,
    at_most: bool,
    limit: f64,
}

impl Constraint {
    /// Parses a constraint such as `p99 <= 20ms`, `memory <= 4GiB`, `throughput >= 1000`.
    pub fn parse(text: &str) -> Result<Self> {
        let malformed = || {
            Usage(format!(
                "--constraint {text}: a figure, <= or >=, and a limit are expected, such as 'p99 <= 20ms'"
            ))
        };
        let (name, at_most, limit) = match (text.split_once("<="), text.split_once(">=")) {
            (Some((name, limit)), None) => (name, true, limit),
            (None, Some((name, limit))) => (name, false, limit),
            _ => return Err(malformed().into()),
        };
        let (figure, unit, _) = figure_of(name.trim())?;
        let limit = limit.trim();
        if matches!(unit, "ms" | "s" | "us") && limit.parse::<f64>().is_ok() {
            return Err(Usage(format!(
                "--constraint {text}: {limit} of what? A time needs its unit, such as {limit}ms"
            ))
            .into());
        }
        let limit = match unit {
            "ms" => parse_duration(limit).ok().map(|d| d.as_secs_f64() * 1e3),
            "s" => parse_duration(limit).ok().map(|d| d.as_secs_f64()),
            "us" => parse_duration(limit).ok().map(|d| d.as_secs_f64() * 1e6),
            "bytes" => parse_bytes(limit).ok().map(|bytes| bytes as f64),
            _ => limit.trim_end_matches("/s").parse().ok(),
        };
        let limit = limit
            .filter(|limit: &f64| limit.is_finite())
            .ok_or_else(malformed)?;
        Ok(Self {
            text: text.trim().into(),
            figure,
            at_most,
            limit,
        })
    }

    /// Returns what is wrong if the constraint is missed. A run without the figure misses it.
    pub fn missed(&self, figures: &Figures) -> Option<String> {
        let Some(value) = figure_in(figures, &self.figure) else {
            return Some(format!("{}: the run has no such figure", self.text));
        };
        let holds = match self.at_most {
            true => value <= self.limit,
            false => value >= self.limit,
        };
        (!holds).then(|| format!("{}: it was {}", self.text, shown(&self.figure, value)))
    }
}

/// Formats a figure for people, with its unit.
pub fn shown(figure: &str, value: f64) -> String {
    use seekscope_run::units::{format_bytes, whole};
    if figure.contains("_bytes") && value >= 0.0 {
        return format_bytes(whole(value));
    }
    let unit = if figure.ends_with("_per_s") {
        "/s"
    } else if figure.ends_with("_ms") {
        " ms"
    } else if figure.contains("_us_") {
        " us"
    } else if figure == "seconds" {
        " s"
    } else {
        ""
    };
    format!("{}{unit}", significant(value))
}

/// Formats a value with four significant digits.
pub fn significant(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 1000.0 || v == 0.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        v if v >= 1.0 => 3,
        _ => 5,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(pairs: &[(&str, f64)]) -> Figures {
        pairs.iter().map(|(name, v)| ((*name).into(), *v)).collect()
    }

    #[test]
    fn metrics_have_a_direction() {
        let p99 = Metric::parse("p99", None).unwrap();
        assert_eq!((p99.figure.as_str(), p99.goal), ("p99_ms", Goal::Minimise));
        let json = Metric::parse("json:/rate", Some(Goal::Maximise)).unwrap();
        assert_eq!(json.of(&figures(&[("json:/rate", 3.0)])), Ok(3.0));
        for (text, direction) in [
            ("json:/rate", None),
            ("json:rate", Some(Goal::Maximise)),
            ("tps", None),
        ] {
            assert!(Metric::parse(text, direction).is_err(), "{text}");
        }
        assert!(p99.of(&figures(&[])).is_err());
        assert!(p99.of(&figures(&[("p99_ms", f64::NAN)])).is_err());
        assert!(p99.of(&figures(&[("p99_ms", 0.0)])).is_err());
    }

    #[test]
    fn one_operation_may_be_what_counts() {
        let reads = Metric::parse("throughput:read", None).unwrap();
        assert_eq!(reads.goal, Goal::Maximise);
        let measured = figures(&[
            ("throughput_per_s", 900.0),
            (&rate_of_operation("read"), 500.0),
        ]);
        assert_eq!(reads.of(&measured), Ok(500.0));
        let unknown = Metric::parse("throughput:reed", None).unwrap();
        let why = unknown.of(&measured).unwrap_err();
        assert!(why.ends_with("its operations are read"), "{why}");
        assert!(Metric::parse("throughput:", None).is_err());
        let writes = Constraint::parse("throughput:update >= 400").unwrap();
        let measured = figures(&[(&rate_of_operation("update"), 399.0)]);
        let missed = writes.missed(&measured).unwrap();
        assert!(missed.ends_with("399.0/s"), "{missed}");
    }

    #[test]
    fn constraints_know_units() {
        let p99 = Constraint::parse("p99 <= 20ms").unwrap();
        assert_eq!(p99.missed(&figures(&[("p99_ms", 20.0)])), None);
        assert!(
            p99.missed(&figures(&[("p99_ms", 20.1)]))
                .unwrap()
                .contains("20.10 ms")
        );
        assert!(p99.missed(&figures(&[])).is_some());
        let memory = Constraint::parse("memory<=4GiB").unwrap();
        assert_eq!(memory.missed(&figures(&[("server_rss_bytes", 4e9)])), None);
        let rate = Constraint::parse("throughput >= 1000/s").unwrap();
        assert!(
            rate.missed(&figures(&[("throughput_per_s", 999.0)]))
                .is_some()
        );
        for text in [
            "p99",
            "p99 <= much",
            "p99 <= 5",
            "p99 < 3ms",
            "x <= 3",
            "p99 <= 1ms >= 2ms",
        ] {
            assert!(Constraint::parse(text).is_err(), "{text}");
        }
    }
}
