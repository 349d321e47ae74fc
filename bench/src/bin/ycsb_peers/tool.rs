//! The three tools: how each is asked for the same work, and what it says of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use seekscope_workload::ycsb::workload_text;
use serde_json::Value;

use crate::child::Ran;

/// YCSB's table, in the database of each tool.
pub(crate) const TABLE: &str = "usertable";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Seekscope,
    Ycsb,
    GoYcsb,
}

const TOOLS: [Tool; 3] = [Tool::Seekscope, Tool::Ycsb, Tool::GoYcsb];

impl Tool {
    /// All of them; another begins in each round.
    pub(crate) fn in_order(round: u32) -> impl Iterator<Item = Self> {
        let first = usize::try_from(round).unwrap_or(0) % TOOLS.len();
        TOOLS.into_iter().cycle().skip(first).take(TOOLS.len())
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Seekscope => "seekscope",
            Self::Ycsb => "YCSB",
            Self::GoYcsb => "go-ycsb",
        }
    }

    /// go-ycsb knows one name only.
    pub(crate) fn database(self) -> &'static str {
        match self {
            Self::Seekscope => "seekscope_bench",
            Self::Ycsb => "ycsb_java",
            Self::GoYcsb => "ycsb",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Load,
    Run,
}

/// What all tools are asked to do.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) phase: Phase,
    pub(crate) workload: char,
    pub(crate) records: u64,
    pub(crate) operations: u64,
    pub(crate) in_flight: u32,
    /// Documents of one insert.
    pub(crate) batch: u32,
}

impl Work {
    pub(crate) fn load(records: u64, in_flight: u32) -> Self {
        Self {
            phase: Phase::Load,
            workload: 'a',
            records,
            operations: records,
            in_flight,
            batch: 1,
        }
    }
}

/// What a tool says of its work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Said {
    pub(crate) per_s: f64,
    /// The 99th percentile of its reads; of its inserts while loading.
    pub(crate) p99_ms: f64,
    /// Operations that did not end well.
    pub(crate) failed: u64,
    /// CPU time per operation while it worked, start and report left out; us.
    pub(crate) working_cpu_us: Option<f64>,
}

/// Where the tools are.
#[derive(Debug)]
pub(crate) struct Tools {
    seekscope: PathBuf,
    classpath: String,
    go_ycsb: PathBuf,
}

impl Tools {
    /// All must be there: a missing peer is no comparison.
    pub(crate) fn check(seekscope: &Path, classpath: &str, go_ycsb: &Path) -> Result<Self> {
        let file = |path: &Path| {
            let found = path.canonicalize();
            found.with_context(|| format!("{}: name a program that is built", path.display()))
        };
        let mut java = Command::new("java");
        let output = java.args(["-cp", classpath, "site.ycsb.Client"]).output();
        let output = output.context("java")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        ensure!(
            said.contains("Usage") || said.contains("Missing"),
            "--ycsb {classpath}: java finds no YCSB there: {said}"
        );
        Ok(Self {
            seekscope: file(seekscope)?,
            classpath: classpath.into(),
            go_ycsb: file(go_ycsb)?,
        })
    }

    /// `folder` is for files of the tool.
    pub(crate) fn command(
        &self,
        tool: Tool,
        work: &Work,
        uri: &str,
        folder: &Path,
    ) -> Result<Command> {
        // Peers put a database's name between the two.
        let (server, options) = uri.split_once("/?").unwrap_or((uri, "w=1"));
        let in_flight = work.in_flight.to_string();
        let properties = folder.join("workload");
        std::fs::write(&properties, workload_text(work.workload)?)?;
        let counts = [
            format!("recordcount={}", work.records),
            format!("operationcount={}", work.operations),
        ];
        let is_load = work.phase == Phase::Load;
        let command = match tool {
            Tool::Seekscope => {
                let out = folder.join("run");
                if out.exists() {
                    std::fs::remove_dir_all(&out)?;
                }
                let mut command = Command::new(&self.seekscope);
                command.args([
                    "bench",
                    "ycsb",
                    server,
                    "--client",
                    "raw",
                    "--json",
                    "--quiet",
                    "--allow-errors",
                ]);
                command.args(["--workload", &work.workload.to_string()]);
                command.args(["--phase", if is_load { "load" } else { "run" }]);
                command.args(["--records", &work.records.to_string()]);
                command.args(["--operations", &work.operations.to_string()]);
                command.args(["--in-flight", &in_flight, "--warm-up", "none"]);
                command.arg("-p").arg(format!("batchsize={}", work.batch));
                command.arg("--out").arg(out);
                command
            }
            Tool::Ycsb => {
                let mut command = Command::new("java");
                command.args(["-cp", &self.classpath, "site.ycsb.Client"]);
                command.arg(if is_load { "-load" } else { "-t" });
                command.args(["-db", "site.ycsb.db.MongoDbClient", "-s"]);
                command.args(["-threads", &in_flight, "-p", "status.interval=1", "-P"]);
                command.arg(properties);
                let url = format!("mongodb.url={server}/{}?{options}", tool.database());
                let batch = format!("batchsize={}", work.batch);
                for property in counts.iter().chain([&url, &batch]) {
                    command.args(["-p", property]);
                }
                command
            }
            Tool::GoYcsb => {
                let mut command = Command::new(&self.go_ycsb);
                command.args([if is_load { "load" } else { "run" }, "mongodb", "-P"]);
                command.arg(properties).args(["-p", "workload=core"]);
                let url = format!("mongodb.url={server}/?{options}");
                let threads = format!("threadcount={in_flight}");
                for property in counts.iter().chain([&url, &threads]) {
                    command.args(["-p", property]);
                }
                command
            }
        };
        Ok(command)
    }
}

/// Operations done, where a line tells: YCSB's status is "… 17 sec: 490 operations; …".
pub(crate) fn progress(tool: Tool, line: &str) -> Option<u64> {
    if tool != Tool::Ycsb {
        return None;
    }
    let (before, _) = line.split_once(" operations;")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// Reads what the tool printed.
pub(crate) fn parse(tool: Tool, work: &Work, ran: &Ran) -> Result<Said> {
    let operation = match work.phase {
        Phase::Load => "INSERT",
        Phase::Run => "READ",
    };
    match tool {
        Tool::Seekscope => parse_seekscope(&ran.stdout, operation),
        Tool::Ycsb => parse_ycsb(work, ran, operation),
        Tool::GoYcsb => parse_go(&ran.stdout, operation),
    }
}

fn parse_seekscope(stdout: &str, operation: &str) -> Result<Said> {
    let document: Value = serde_json::from_str(stdout)?;
    let summary = &document["summary"];
    let steps = summary["steps"].as_array().context("no steps")?;
    let step = steps.last().context("no step")?;
    ensure!(
        summary["valid"] == true,
        "the run is invalid: {}",
        step["invalid"]
    );
    let operations = summary["operations"].as_array().context("no operations")?;
    let named = operations.iter().find(|o| o["name"] == operation);
    let p99_us = named.and_then(|o| o["service_us"]["p99"].as_f64());
    // Peers count the documents of a batch.
    let per_request = match (operation, named) {
        ("INSERT", Some(insert)) => {
            let count = insert["count"].as_f64().filter(|count| *count > 0.0);
            insert["documents"].as_f64().zip(count)
        }
        _ => None,
    };
    let documents = per_request.map_or(1.0, |(documents, count)| documents / count);
    let failures = step["failures"].as_array();
    let failed = failures
        .into_iter()
        .flatten()
        .filter_map(|f| f["count"].as_u64());
    Ok(Said {
        per_s: step["throughput_per_s"].as_f64().context("no throughput")? * documents,
        p99_ms: p99_us.context("no p99")? / 1e3,
        failed: failed.sum(),
        working_cpu_us: step["client_cpu_us_per_op"]
            .as_f64()
            .map(|us| us / documents),
    })
}

/// `[READ], 99thPercentileLatency(us), 151679`.
fn parse_ycsb(work: &Work, ran: &Ran, operation: &str) -> Result<Said> {
    let value = |metric: &str, name: &str| {
        let start = format!("[{metric}], {name}, ");
        let found = ran
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix(&start));
        found.and_then(|value| value.trim().parse::<f64>().ok())
    };
    let kinds = ["READ", "UPDATE", "INSERT"];
    let good: f64 = kinds
        .iter()
        .flat_map(|kind| [value(kind, "Return=OK"), value(kind, "Return=BATCHED_OK")])
        .flatten()
        .sum();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count that was printed as one"
    )]
    let good = good as u64;
    let warm = ran.half.filter(|(done, _)| *done < work.operations);
    Ok(Said {
        per_s: value("OVERALL", "Throughput(ops/sec)").context("no throughput")?,
        p99_ms: value(operation, "99thPercentileLatency(us)").context("no p99")? / 1e3,
        failed: work.operations.saturating_sub(good),
        working_cpu_us: warm.map(|(done, cpu_ns)| {
            ran.cpu_ns.saturating_sub(cpu_ns) as f64 / 1e3 / (work.operations - done) as f64
        }),
    })
}

/// "READ   - Takes(s): 4.9, Count: 4504, OPS: 911.3, …, 99th(us): 53023, …"; the last such line.
fn parse_go(stdout: &str, operation: &str) -> Result<Said> {
    let number = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!("{name}: "))?;
        rest.split(',').next()?.trim().parse::<f64>().ok()
    };
    let last = |name: &str| {
        let mut lines = stdout.lines().rev();
        lines.find(|line| line.split_whitespace().next() == Some(name))
    };
    let Some(total) = last("TOTAL") else {
        bail!("no line TOTAL");
    };
    let of_kind = last(operation).context("no line of the operation")?;
    let failed = ["READ_ERROR", "UPDATE_ERROR", "INSERT_ERROR"].map(|kind| {
        let count = last(kind).and_then(|line| number(line, "Count"));
        count.unwrap_or(0.0)
    });
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count that was printed as one"
    )]
    let failed = failed.iter().sum::<f64>() as u64;
    Ok(Said {
        per_s: number(total, "OPS").context("no OPS")?,
        p99_ms: number(of_kind, "99th(us)").context("no p99")? / 1e3,
        failed,
        working_cpu_us: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(stdout: &str) -> Ran {
        Ran {
            stdout: stdout.into(),
            stderr: String::new(),
            cpu_ns: 3_000_000,
            rss_bytes: 0,
            half: Some((6, 1_000_000)),
        }
    }

    #[test]
    fn each_tools_figures_are_read() {
        let work = Work {
            phase: Phase::Run,
            operations: 10,
            ..Work::load(1, 1)
        };
        let ycsb = "[OVERALL], Throughput(ops/sec), 415.5\n[READ], Operations, 5\n\
                    [READ], 99thPercentileLatency(us), 2500\n[READ], Return=OK, 5\n\
                    [UPDATE], Return=OK, 4\n[UPDATE], Return=ERROR, 1";
        let said = parse(Tool::Ycsb, &work, &ran(ycsb)).unwrap();
        let expected = Said {
            per_s: 415.5,
            p99_ms: 2.5,
            failed: 1,
            working_cpu_us: Some(500.0),
        };
        assert_eq!(said, expected);
        let go = "READ   - Takes(s): 1, Count: 1, OPS: 1.0, 99th(us): 1, 99.9th(us): 9\nRun finished\n\
                  READ   - Takes(s): 4.9, Count: 5, OPS: 911.3, 99th(us): 3000, 99.9th(us): 9\n\
                  TOTAL  - Takes(s): 4.9, Count: 9, OPS: 1818.3, 99th(us): 4000\n\
                  UPDATE_ERROR - Takes(s): 2.2, Count: 1, OPS: 0.4";
        let said = parse(Tool::GoYcsb, &work, &ran(go)).unwrap();
        assert_eq!((said.per_s, said.p99_ms, said.failed), (1818.3, 3.0, 1));
        let status = "2026-11-22 11:23:38:622 18 sec: 1721 operations; 1217.61 current";
        assert_eq!(progress(Tool::Ycsb, status), Some(1721));
        assert_eq!(
            progress(Tool::Ycsb, "mongo client connection created"),
            None
        );
    }
}
