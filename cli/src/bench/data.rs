//! The data that a benchmark loads or finds: who owns it, whether it is the data that is wanted, and whether it
//! holds the acknowledged writes.

use std::time::Duration;

use anyhow::{Result, anyhow};
use seekscope_client::EndReason;
use seekscope_run::units::format_count;
use seekscope_run::{Limitation, shell_quoted};
use seekscope_server::Namespace;
use seekscope_workload::ownership::DataSet;
use seekscope_workload::{ExpectedData, VerificationOptions, WorkloadError, count_documents};
use tokio::time::timeout;

use super::ending::failed_with;
use super::owned::Owned;
use super::stage::{Stage, StepDone};
use super::target::Target;
use crate::args::BenchTargetArgs;
use crate::exit::{Usage, message_of};

/// Documents read back from each collection.
const SAMPLES: u64 = 1000;
/// Time for dropping data after a failure or a signal; a second one ends the wait.
pub const DROP_LIMIT: Duration = Duration::from_secs(30);
const BARRIER_POLL: Duration = Duration::from_millis(200);

/// Prepares for a load: drops an earlier data set of that name, or empties its collections where they must
/// stay, and writes the entry of the new one. One of several clients drops nothing, as the others may have
/// begun. `arguments`: the command line, without secrets.
pub async fn begin_load(
    target: &Target,
    database: &str,
    wanted: &DataSet,
    clients: u32,
    arguments: &[String],
) -> Result<()> {
    let mut owned = Owned::open(target, database).await?;
    match owned.data_set(&wanted.name) {
        Some(earlier) if clients > 1 && earlier.loaded => {
            return Err(Usage(format!(
                "the database {database} holds loaded data; several clients cannot drop it: name another database with \
                 --database, or drop the data first (add your login to the connection string if it needs one): {}",
                dropping(arguments, earlier.records)
            ))
            .into());
        }
        Some(earlier) if clients > 1 && earlier.is_same_data(wanted) => return Ok(()),
        Some(_) => owned.drop_data_set(&wanted.name).await?,
        None => {}
    }
    owned.record(wanted.clone()).await
}

/// Returns the command that drops what this one finds loaded, with as many records: what says how to send, and where the
/// run goes, is left out.
fn dropping(arguments: &[String], records: u64) -> String {
    const WITH_VALUE: [&str; 15] = [
        "-w",
        "--arrivals",
        "--clients",
        "--for",
        "--in-flight",
        "--operations",
        "--out",
        "--phase",
        "--rate",
        "--records",
        "--slo",
        "--start-at",
        "--threads",
        "--warm-up",
        "--workload",
    ];
    const ALONE: [&str; 4] = ["--drop", "--keep", "--json", "--ycsb-output"];
    let mut kept = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or_default();
        match WITH_VALUE.contains(&name) {
            true if name == word.as_str() => {
                words.next();
            }
            true => {}
            false if ALONE.contains(&word.as_str()) => {}
            false => kept.push(shell_quoted(word)),
        }
    }
    format!(
        "seekscope {} --phase run --records {records} --operations 1 --drop",
        kept.join(" ")
    )
}

/// Returns an error if anything failed in a load: its data is not fit for measurements.
pub fn ensure_complete(stage: &mut Stage, done: &StepDone) -> Result<()> {
    let failure = stage
        .step_at(done.index)
        .and_then(|step| step.failures.first());
    match failure {
        None if done.ended.reason == EndReason::Done => Ok(()),
        None => Err(anyhow!("the load was broken off; nothing is run on it")),
        Some(failure) => Err(anyhow!(
            "the load is not complete, so nothing is run on it: {}",
            failed_with(failure)
        )),
    }
}

/// Records that everything is loaded.
pub async fn end_load(target: &Target, database: &str, name: &str) -> Result<()> {
    let mut owned = Owned::open(target, database).await?;
    owned.set_loaded(name).await
}

/// Returns the data set that a run is to work on; an error if it is missing or not the one wanted.
pub async fn find_loaded(target: &Target, database: &str, wanted: &DataSet) -> Result<DataSet> {
    let owned = Owned::open(target, database).await?;
    let refused = |why: &str| {
        Usage(format!(
            "the database {database} {why}: load it first (--phase load, or both phases)"
        ))
    };
    let found = owned
        .data_set(&wanted.name)
        .ok_or_else(|| refused(&format!("holds no data of {}", wanted.name)))?;
    if !found.loaded {
        return Err(refused("was not loaded to its end").into());
    }
    if !found.is_same_data(wanted) {
        return Err(refused(&format!("holds other data ({})", difference(found, wanted))).into());
    }
    Ok(found.clone())
}

/// Describes the differences between the settings, for people.
fn difference(found: &DataSet, wanted: &DataSet) -> String {
    let mut differences = Vec::new();
    if found.records != wanted.records {
        differences.push(format!("{} records", format_count(found.records)));
    }
    if found.edition != wanted.edition {
        differences.push(format!("edition {}", found.edition));
    }
    if found.seed != wanted.seed {
        differences.push(format!("seed {}", found.seed));
    }
    let others = found
        .settings
        .iter()
        .filter(|(name, value)| wanted.settings.get(*name) != Some(value));
    differences.extend(others.map(|(name, value)| format!("{name}={value}")));
    differences.join(", ")
}

/// Records how far the inserts of a run came.
pub async fn advance(target: &Target, database: &str, name: &str, next: u64) -> Result<()> {
    let mut owned = Owned::open(target, database).await?;
    owned.advance(name, next).await
}

/// Drops the data set.
pub async fn drop_data(target: &Target, database: &str, name: &str) -> Result<()> {
    let mut owned = Owned::open(target, database).await?;
    owned.drop_data_set(name).await
}

/// Drops the data set of each server if the command line says so: after work that went well, after a signal and
/// after a failure. What was refused beforehand is not this run's to drop. Returns the work's result.
pub async fn drop_at_end(
    stage: &mut Stage,
    targets: &[Target],
    args: &BenchTargetArgs,
    name: &str,
    worked: Result<()>,
) -> Result<()> {
    let is_refused = |error: &anyhow::Error| {
        let of_work = error.downcast_ref::<WorkloadError>();
        error.is::<Usage>() || of_work.is_some_and(WorkloadError::is_refusal)
    };
    if !args.drop || worked.as_ref().is_err_and(is_refused) {
        return worked;
    }
    // The data of a private server go with it.
    let foreign = targets
        .iter()
        .filter(|target| !target.shares_data)
        .filter(|target| !target.facts.local || worked.is_ok());
    for target in foreign {
        let dropping = drop_data(target, &args.database, name);
        if worked.is_ok() {
            stage.asking(dropping).await?;
            continue;
        }
        let _step = stage.progress.step("dropping the data");
        let dropped = timeout(DROP_LIMIT, dropping).await;
        let why = match dropped {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => message_of(&error),
            Err(_) => format!("it took longer than {} s", DROP_LIMIT.as_secs()),
        };
        let not_dropped = Limitation {
            what: format!(
                "what was loaded into {}, if anything was, was not dropped",
                args.database
            ),
            why,
            remedy: "the next load, or a run with --drop, drops them".into(),
        };
        // Nothing else says so if there is nothing to report yet.
        stage.progress.complain(format!(
            "{}: {}; {}",
            not_dropped.what, not_dropped.why, not_dropped.remedy
        ));
        stage.limit(not_dropped);
    }
    worked
}

/// Counts and reads back the documents that a step left, and puts the result into its record.
pub async fn verify_step(
    stage: &mut Stage,
    target: &Target,
    database: &str,
    index: usize,
    expected: &[&dyn ExpectedData],
    in_doubt: u64,
) -> Result<()> {
    let options = VerificationOptions {
        samples: SAMPLES,
        seed: 1,
        in_doubt,
    };
    let found = {
        let _step = stage.progress.step("reading back what was acknowledged");
        let verified = async {
            let owned = Owned::open(target, database).await?;
            owned.verify(expected, &options).await
        };
        stage.asking(verified).await?
    };
    if let Some(step) = stage.step_at(index) {
        step.verification = Some(found);
    }
    stage.session.save()
}

/// Waits until a collection holds that many documents, that is, until the other clients have loaded their
/// parts.
pub async fn await_documents(
    stage: &Stage,
    target: &Target,
    database: &str,
    collection: &str,
    count: u64,
    limit: Duration,
) -> Result<()> {
    let _step = stage.progress.step("waiting for the other clients' loads");
    let end = tokio::time::Instant::now() + limit;
    let waiting = async {
        let owned = Owned::open(target, database).await?;
        loop {
            let found = owned.count(collection).await?;
            if found >= count {
                return Ok(());
            }
            if tokio::time::Instant::now() > end {
                anyhow::bail!(
                    "after {limit:?} the collection {collection} holds {} of {} documents: did all \
                     clients start?",
                    format_count(found),
                    format_count(count)
                );
            }
            tokio::time::sleep(BARRIER_POLL).await;
        }
    };
    stage.asking(waiting).await
}

/// Returns the number of documents, by the server's own count. Through a router that may include copies which moves of
/// chunks have left: if it is not the expected one, the documents are counted one by one.
pub async fn count(
    target: &Target,
    database: &str,
    collection: &str,
    expected: u64,
) -> Result<u64> {
    let owned = Owned::open(target, database).await?;
    let counted = owned.count(collection).await?;
    if counted == expected || target.routed().is_none() {
        return Ok(counted);
    }
    let namespace = Namespace::new(database, collection)?;
    Ok(count_documents(target.server()?, &namespace).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drops_loaded_data_can_be_typed_as_it_is_printed() {
        let typed = [
            "bench",
            "ycsb",
            "mongodb://db1/?tls=true",
            "--clients",
            "1/2",
            "--records=5000",
            "-p",
            "fieldcount=3",
            "--for",
            "10s",
            "--phase=load",
            "--out",
            "run 1",
            "--drop",
        ];
        let typed: Vec<String> = typed.map(String::from).to_vec();
        assert_eq!(
            dropping(&typed, 2000),
            "seekscope bench ycsb 'mongodb://db1/?tls=true' -p fieldcount=3 --phase run --records 2000 --operations 1 \
             --drop"
        );
    }
}
