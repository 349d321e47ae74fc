//! The runs to be merged, and whether they are parts of one job.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Result;
use seekscope_run::{BenchMeasurement, BenchStep, RunDirectory, RunDocument};

use crate::exit::Usage;

/// One client's run.
#[derive(Debug)]
pub struct Client {
    pub directory: RunDirectory,
    pub document: RunDocument,
    pub bench: BenchMeasurement,
    /// The client's number, from 1, and the number of clients.
    pub number: u32,
    pub count: u32,
}

impl Client {
    /// Converts a moment of this run to the merged run's monotonic clock, by way of the wall clocks.
    pub fn on_clock(&self, t_ns: u64, merged: seekscope_run::ClockOffset) -> u64 {
        let own = self.document.started;
        let wall_ns = i128::from(t_ns) - i128::from(own.monotonic_ns) + i128::from(own.realtime_ns);
        let merged_ns = wall_ns - i128::from(merged.realtime_ns) + i128::from(merged.monotonic_ns);
        u64::try_from(merged_ns).unwrap_or(0)
    }
}

/// Opens the runs, in the order of their numbers.
pub fn open(runs: &[PathBuf]) -> Result<Vec<Client>> {
    refuse_twice(runs)?;
    let mut clients = Vec::new();
    for run in runs {
        let (directory, document) = RunDirectory::open(run)?;
        let refused = |why: &str| Usage(format!("{} {why}", run.display()));
        let bench = document
            .bench
            .clone()
            .filter(|bench| !bench.steps.is_empty())
            .ok_or_else(|| refused("is not a run of `seekscope bench`, or it measured nothing"))?;
        let (number, count) = bench.client_number.ok_or_else(|| {
            refused("is not the run of one of several clients of a job (bench … --clients N/M)")
        })?;
        clients.push(Client {
            directory,
            document,
            bench,
            number,
            count,
        });
    }
    clients.sort_by_key(|client| client.number);
    Ok(clients)
}

/// Refuses a run that is named twice, in whatever way. Opened once more it would look like one that is going on.
fn refuse_twice(runs: &[PathBuf]) -> Result<()> {
    let mut known = BTreeSet::new();
    for run in runs {
        let real = run.canonicalize().unwrap_or_else(|_| run.clone());
        if !known.insert(real) {
            return Err(Usage(format!("{} is named twice", run.display())).into());
        }
    }
    Ok(())
}

/// Refuses runs that are not parts of one job; the reason names the first difference.
pub fn check_same_job(clients: &[Client]) -> Result<()> {
    let Some((first, others)) = clients.split_first() else {
        return Err(Usage("there are no runs to merge".into()).into());
    };
    for (before, client) in clients.iter().zip(others) {
        if before.number == client.number {
            let why = format!("two of the runs are of client {}", client.number);
            return Err(Usage(why).into());
        }
    }
    for client in others {
        if let Some(difference) = difference(first, client) {
            return Err(Usage(format!(
                "{} and {} are not parts of one job: {difference}",
                first.directory.path().display(),
                client.directory.path().display()
            ))
            .into());
        }
    }
    Ok(())
}

/// Returns the numbers of clients whose runs are missing.
pub fn missing_numbers(clients: &[Client]) -> Vec<u32> {
    let count = clients.first().map_or(0, |client| client.count);
    let is_there = |number: &u32| clients.iter().any(|client| client.number == *number);
    (1..=count).filter(|number| !is_there(number)).collect()
}

fn difference(a: &Client, b: &Client) -> Option<String> {
    let named = [
        (
            "seekscope",
            &a.document.seekscope_version,
            &b.document.seekscope_version,
        ),
        ("workload", &a.bench.workload, &b.bench.workload),
        ("edition", &a.bench.edition, &b.bench.edition),
        ("database", &a.bench.database, &b.bench.database),
    ];
    let different =
        |what: &str, a: &str, b: &str| format!("{what} is {a} in one and {b} in the other");
    if let Some((what, a, b)) = named.into_iter().find(|(_, a, b)| a != b) {
        return Some(different(what, a, b));
    }
    if a.count != b.count {
        return Some(different(
            "the number of clients",
            &a.count.to_string(),
            &b.count.to_string(),
        ));
    }
    if a.document.seed != b.document.seed {
        let seed = |c: &Client| c.document.seed.map_or("unknown".into(), |s| s.to_string());
        return Some(different("the seed", &seed(a), &seed(b)));
    }
    let servers = [a, b].map(|c| c.document.target.clone().unwrap_or_default());
    if servers[0].version != servers[1].version || servers[0].product != servers[1].product {
        let [first, second] = servers.map(|s| format!("{} {}", s.product, s.version));
        return Some(different("the server", &first, &second));
    }
    setting(a, b).or_else(|| steps(a, b))
}

fn setting(a: &Client, b: &Client) -> Option<String> {
    let names = a.bench.settings.keys().chain(b.bench.settings.keys());
    let value = |c: &Client, name: &str| {
        c.bench
            .settings
            .get(name)
            .cloned()
            .unwrap_or("not set".into())
    };
    let mut different = names.filter(|name| value(a, name) != value(b, name));
    let name = different.next()?;
    Some(format!(
        "{name} is {} in one and {} in the other",
        value(a, name),
        value(b, name)
    ))
}

/// Compares the steps begun, which must be the same; a run that was broken off may lack the last ones.
fn steps(a: &Client, b: &Client) -> Option<String> {
    let what = |step: &BenchStep| {
        let BenchStep {
            name,
            kind,
            workload,
            arrivals,
            in_flight,
            ..
        } = step;
        (
            name.clone(),
            kind.clone(),
            workload.clone(),
            arrivals.clone(),
            *in_flight,
        )
    };
    let pairs = a.bench.steps.iter().zip(&b.bench.steps);
    let mut different = pairs.filter(|(a, b)| what(a) != what(b));
    let (a, b) = different.next()?;
    if a.name == b.name && a.in_flight != b.in_flight {
        return Some(format!(
            "\"{}\" had at most {} operations in flight in one and {} in the other",
            a.name, a.in_flight, b.in_flight
        ));
    }
    Some(format!(
        "one ran {} where the other ran {}, or they sent its operations on different schedules",
        a.name, b.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_once() {
        let folder = tempfile::tempdir().unwrap();
        let one = folder.path().to_path_buf();
        let again = folder.path().join(".");
        assert!(refuse_twice(&[one.clone(), "/nowhere".into()]).is_ok());
        let error = refuse_twice(&[one, again]).unwrap_err();
        assert!(
            error.is::<Usage>() && error.to_string().contains("twice"),
            "{error}"
        );
    }
}
