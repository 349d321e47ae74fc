//! The user's own load: a shell command that is run once per trial and prints what it measured.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use seekscope_settings::script::{ScriptError, run_shell};

use super::arena::{Fit, Unfit};
use super::metric::Figures;
use crate::bench::Stage;

/// Time limit for emptying caches and the like.
const PREPARE_LIMIT: Duration = Duration::from_secs(600);
/// How many bytes of an error are shown.
const SHOWN_BYTES: usize = 400;

/// How a run of the command ended.
#[derive(Debug)]
pub enum Ran {
    Done(Figures),
    /// It failed, hung, or printed nothing useful, with the reason.
    Failed(String),
}

/// Runs the command with these environment variables, and reads the wanted figures: `seconds` always, `output`,
/// and `json:/…` from what it prints. Dropping the future kills the command and what it started.
pub async fn run(
    command: &str,
    environment: &BTreeMap<String, String>,
    wanted: &[&str],
    limit: Duration,
) -> Result<Ran> {
    let started = Instant::now();
    let ended = match run_shell(command, &[], environment, limit).await {
        Ok(ended) => ended,
        Err(ScriptError::TimedOut { limit_s, .. }) => {
            return Ok(Ran::Failed(format!(
                "it had not ended after {limit_s} s and was killed; allow more with --command-limit"
            )));
        }
        Err(error) => return Err(error.into()),
    };
    let (status, stdout) = (ended.status, ended.output);
    if !status.success() {
        return Ok(Ran::Failed(format!(
            "it ended with {status}: {}",
            shown(&ended.errors)
        )));
    }
    let mut figures = Figures::from([("seconds".into(), started.elapsed().as_secs_f64())]);
    for name in wanted {
        match read(name, &stdout) {
            Some(Ok(value)) => {
                figures.insert((*name).into(), value);
            }
            Some(Err(why)) => {
                return Ok(Ran::Failed(format!(
                    "{name}: {why}; it printed: {}",
                    shown(&stdout)
                )));
            }
            None => {}
        }
    }
    Ok(Ran::Done(figures))
}

/// Runs the user's preparation for a run; its output is not read.
pub async fn prepare(
    stage: &Stage,
    command: &str,
    environment: &BTreeMap<String, String>,
) -> Fit<()> {
    let ran = run(command, environment, &[], PREPARE_LIMIT);
    Ok(match stage.interruption.or(ran).await? {
        Ran::Done(_) => Ok(()),
        Ran::Failed(why) => Err(Unfit(format!("--prepare: {why}"))),
    })
}

/// Reads a figure from the output; `None` for figures of another kind.
fn read(name: &str, stdout: &str) -> Option<Result<f64, String>> {
    match name.strip_prefix("json:") {
        Some(pointer) => Some(from_json(stdout, pointer)),
        None if name == "output" => Some(last_number(stdout)),
        None => None,
    }
}

/// Reads a figure from the whole output as JSON, or from the last line that is JSON.
fn from_json(stdout: &str, pointer: &str) -> Result<f64, String> {
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    let document = parse(stdout)
        .or_else(|| {
            stdout
                .lines()
                .rev()
                .find_map(|line| parse(line).filter(|v| v.is_object()))
        })
        .ok_or("no JSON was printed")?;
    let value = document
        .pointer(pointer)
        .ok_or("the JSON has nothing there")?;
    let number = value
        .as_f64()
        .or_else(|| value.as_str()?.trim().parse().ok());
    number.ok_or_else(|| format!("it is not a number but {value}"))
}

fn last_number(stdout: &str) -> Result<f64, String> {
    let number = |word: &str| word.parse::<f64>().ok().filter(|n| n.is_finite());
    let found = stdout.split_whitespace().rev().find_map(number);
    found.ok_or_else(|| "no number was printed".into())
}

fn shown(text: &str) -> String {
    let text = text.trim();
    let from = text.len().saturating_sub(SHOWN_BYTES);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at));
    match text.get(from.unwrap_or(0)..) {
        Some("") | None => "nothing".into(),
        Some(text) => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ran(command: &str, wanted: &[&str]) -> Result<Figures, String> {
        let environment = BTreeMap::from([("SEEKSCOPE_KNOB_X".into(), "7".into())]);
        match run(command, &environment, wanted, Duration::from_secs(20))
            .await
            .unwrap()
        {
            Ran::Done(figures) => Ok(figures),
            Ran::Failed(why) => Err(why),
        }
    }

    #[tokio::test]
    async fn reads_what_a_command_prints() {
        let json = r#"echo starting; echo '{"a": {"rate": 12.5}}'"#;
        assert_eq!(
            ran(json, &["json:/a/rate"]).await.unwrap()["json:/a/rate"],
            12.5
        );
        let number = ran("echo ops: $SEEKSCOPE_KNOB_X per second", &["output"])
            .await
            .unwrap();
        assert_eq!(number["output"], 7.0);
        assert!(number["seconds"] > 0.0);
    }

    #[tokio::test]
    async fn says_why_there_is_no_figure() {
        for (command, wanted, why) in [
            ("echo nothing to see", "output", "no number"),
            ("echo '{\"a\": \"x\"}'", "json:/a", "not a number"),
            ("echo '{}'", "json:/a", "nothing there"),
            ("echo full >&2; exit 3", "output", "full"),
        ] {
            let said = ran(command, &[wanted]).await.unwrap_err();
            assert!(said.contains(why), "{command}: {said}");
        }
    }

    #[tokio::test]
    async fn what_hangs_is_killed_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let command = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let environment = BTreeMap::new();
        let ran = run(
            &command,
            &environment,
            &["output"],
            Duration::from_millis(500),
        )
        .await;
        assert!(matches!(ran.unwrap(), Ran::Failed(why) if why.contains("killed")));
        let pid: i32 = std::fs::read_to_string(file)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let is_gone = || {
            std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .map_or(true, |stat| stat.contains(") Z "))
        };
        for _ in 0..100 {
            if is_gone() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{pid} still runs");
    }
}
