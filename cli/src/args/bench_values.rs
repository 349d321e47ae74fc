//! Values of `seekscope bench` that have a grammar of their own: rates, arrivals, objectives, shares of
//! work, moments.

use std::path::PathBuf;
use std::time::Duration;

use seekscope_run::units::{format_ns, nanoseconds, parse_duration};
use seekscope_server::Namespace;

/// Faster than any client: guards against absurd schedules.
const RATE_MAX_PER_S: f64 = 1e8;

/// How the arrivals of an open loop are spread.
#[derive(Debug, Clone, PartialEq)]
pub enum ArrivalsName {
    Constant,
    Poisson,
    Ramp {
        from_per_s: f64,
        to_per_s: f64,
        over: Duration,
    },
    Replay(PathBuf),
}

/// `500`, `500/s`, `10k/s`: operations per second.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches("/s");
    let (digits, factor) = match number.as_bytes().last() {
        Some(b'k' | b'K') => (&number[..number.len() - 1], 1e3),
        Some(b'M') => (&number[..number.len() - 1], 1e6),
        _ => (number, 1.0),
    };
    match digits.parse::<f64>().map(|rate| rate * factor) {
        Ok(rate) if rate > 0.0 && rate <= RATE_MAX_PER_S => Ok(rate),
        _ => Err("operations per second are expected, e.g. 500/s or 10k/s".into()),
    }
}

/// `constant`, `poisson`, `ramp:FROM..TO:TIME`, `replay:FILE`.
pub fn parse_arrivals(text: &str) -> Result<ArrivalsName, String> {
    let expected =
        || "constant, poisson, ramp:FROM..TO:TIME or replay:FILE is expected".to_string();
    match text.split_once(':') {
        None if text == "constant" => Ok(ArrivalsName::Constant),
        None if text == "poisson" => Ok(ArrivalsName::Poisson),
        Some(("ramp", rest)) => {
            let (rates, time) = rest.rsplit_once(':').ok_or_else(expected)?;
            let (from, to) = rates.split_once("..").ok_or_else(expected)?;
            Ok(ArrivalsName::Ramp {
                from_per_s: parse_rate(from)?,
                to_per_s: parse_rate(to)?,
                over: parse_duration(time).map_err(|e| e.to_string())?,
            })
        }
        Some(("replay", file)) if !file.is_empty() => Ok(ArrivalsName::Replay(file.into())),
        _ => Err(expected()),
    }
}

/// What a service promises: percentiles of response time, and which share of operations may fail.
#[derive(Debug, Clone, PartialEq)]
pub struct Slo {
    /// At least one.
    pub limits: Vec<LatencyLimit>,
    /// 0 to 1; 0 unless said otherwise.
    pub errors_share: f64,
}

/// A percentile of response time that must not be above a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyLimit {
    /// 0 to 1; 1 is the maximum.
    pub quantile: f64,
    pub limit: Duration,
}

impl LatencyLimit {
    /// "p99", "p99.9", "max".
    pub fn name(&self) -> String {
        match self.quantile {
            1.0 => "max".into(),
            quantile => {
                let percent = format!("{:.4}", quantile * 100.0);
                format!("p{}", percent.trim_end_matches('0').trim_end_matches('.'))
            }
        }
    }
}

impl std::fmt::Display for Slo {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, limit) in self.limits.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let ns = nanoseconds(limit.limit);
            write!(
                out,
                "{comma}{}={}",
                limit.name(),
                format_ns(ns).replace(' ', "")
            )?;
        }
        if self.errors_share > 0.0 {
            write!(out, ",errors={}%", self.errors_share * 100.0)?;
        }
        Ok(())
    }
}

/// `p99=20ms`, `p50=1ms,p99.9=100ms,errors=0.1%`. `p999` means 99.9 as elsewhere in results.
pub fn parse_slo(text: &str) -> Result<Slo, String> {
    let expected = || {
        format!("`{text}`: p99=20ms is expected, with more after commas, e.g. ,p999=1s,errors=0.1%")
    };
    let mut slo = Slo {
        limits: Vec::new(),
        errors_share: 0.0,
    };
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(expected)?;
        if name == "errors" {
            slo.errors_share = parse_share(value).ok_or_else(expected)?;
            continue;
        }
        // Most who leave the unit out mean milliseconds, and would be held to seconds.
        if value.ends_with(|c: char| c.is_ascii_digit()) {
            return Err(format!(
                "`{part}`: a time with its unit is expected, such as {value}ms"
            ));
        }
        let limit = parse_duration(value).map_err(|e| e.to_string())?;
        if limit.is_zero() {
            return Err(format!(
                "`{text}`: no operation takes no time; a limit above 0 is expected"
            ));
        }
        slo.limits.push(LatencyLimit {
            quantile: parse_quantile(name).ok_or_else(expected)?,
            limit,
        });
    }
    if slo.limits.is_empty() {
        return Err(expected());
    }
    Ok(slo)
}

fn parse_quantile(name: &str) -> Option<f64> {
    if name == "max" {
        return Some(1.0);
    }
    let digits = name.strip_prefix('p')?;
    let percent: f64 = match digits {
        "999" => 99.9,
        "9999" => 99.99,
        _ => digits.parse().ok()?,
    };
    (percent > 0.0 && percent <= 100.0).then_some(percent / 100.0)
}

fn parse_share(text: &str) -> Option<f64> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    (0.0..=1.0).contains(&share).then_some(share)
}

/// A database's name that a server takes.
pub fn parse_database(text: &str) -> Result<String, String> {
    match Namespace::database_flaw(text) {
        None => Ok(text.into()),
        Some(why) => Err(why.into()),
    }
}

/// This process's number, from 1, and of how many: `2/4`.
pub fn parse_clients(text: &str) -> Result<(u32, u32), String> {
    let parsed = text
        .split_once('/')
        .and_then(|(number, count)| Some((number.parse().ok()?, count.parse().ok()?)));
    match parsed {
        Some((number, count)) if number >= 1 && number <= count && count <= 10_000 => {
            Ok((number, count))
        }
        _ => Err("N/M is expected: this client's number from 1, and of how many".into()),
    }
}

/// When work begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StartAt {
    After(Duration),
    /// Wall clock, ns since 1970.
    Epoch(i128),
}

/// RFC 3339, `+10s`, or seconds since 1970.
pub fn parse_start(text: &str) -> Result<StartAt, String> {
    if let Some(after) = text.strip_prefix('+') {
        return match parse_duration(after) {
            Ok(after) => Ok(StartAt::After(after)),
            Err(error) => Err(error.to_string()),
        };
    }
    if let Ok(seconds) = text.parse::<u32>() {
        return Ok(StartAt::Epoch(i128::from(seconds) * 1_000_000_000));
    }
    match text.parse::<jiff::Timestamp>() {
        Ok(moment) => Ok(StartAt::Epoch(moment.as_nanosecond())),
        Err(_) => {
            Err("a moment is expected: 2026-09-01T10:15:00Z, +10s, or seconds since 1970".into())
        }
    }
}

/// `NAME=VALUE`; the value may be empty.
pub fn parse_setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().into(), value.trim().into()))
        }
        _ => Err("NAME=VALUE is expected".into()),
    }
}

/// `NAME=V1,V2[,V3]`, at least two different values.
pub fn parse_alternatives(text: &str) -> Result<(String, Vec<String>), String> {
    let (name, values) = parse_setting(text)?;
    let mut alternatives: Vec<String> = Vec::new();
    for value in values.split(',').map(str::trim) {
        if alternatives.iter().any(|v| v == value) {
            return Err(format!("{value} is named twice"));
        }
        alternatives.push(value.into());
    }
    match alternatives.len() {
        2.. => Ok((name, alternatives)),
        _ => Err("NAME=V1,V2 is expected: at least two values to compare".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_arrivals() {
        assert_eq!(parse_rate("10k/s"), Ok(10_000.0));
        assert_eq!(parse_rate("0.5"), Ok(0.5));
        for bad in ["", "/s", "0", "-1", "NaN", "inf", "k", "1e9", "ü"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
        let ramp = ArrivalsName::Ramp {
            from_per_s: 100.0,
            to_per_s: 5000.0,
            over: Duration::from_secs(60),
        };
        assert_eq!(parse_arrivals("ramp:100..5k:60s"), Ok(ramp));
        assert!(parse_arrivals("replay:").is_err() && parse_arrivals("uniform").is_err());
    }

    #[test]
    fn objectives_name_what_they_limit() {
        let slo = parse_slo("p99=20ms,p999=1s,max=2s,errors=0.1%").unwrap();
        let names: Vec<String> = slo.limits.iter().map(LatencyLimit::name).collect();
        assert_eq!(names, ["p99", "p99.9", "max"]);
        assert!((slo.errors_share - 0.001).abs() < 1e-12);
        assert_eq!(parse_slo("p99=20ms").unwrap().to_string(), "p99=20.0ms");
        for bad in [
            "",
            "p99",
            "p0=1s",
            "p101=1s",
            "p99=0ms",
            "p99=20",
            "errors=0",
            "x=1s",
            "p99=1s,errors=2",
        ] {
            assert!(parse_slo(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn moments_shares_and_settings() {
        assert_eq!(parse_clients("2/4"), Ok((2, 4)));
        assert!(parse_clients("0/4").is_err() && parse_clients("5/4").is_err());
        assert_eq!(
            parse_start("2026-09-01T10:15:00Z"),
            Ok(StartAt::Epoch(1_788_257_700_000_000_000))
        );
        assert_eq!(
            parse_start("+2s"),
            Ok(StartAt::After(Duration::from_secs(2)))
        );
        assert_eq!(parse_start("5"), Ok(StartAt::Epoch(5_000_000_000)));
        assert!(parse_start("tomorrow").is_err());
        let (name, values) = parse_alternatives("block_compressor=none,lz4").unwrap();
        assert_eq!((name.as_str(), values.len()), ("block_compressor", 2));
        assert!(parse_alternatives("a=1").is_err() && parse_alternatives("a=1,1").is_err());
    }
}
