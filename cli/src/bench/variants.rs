//! Opens one server, or several that are measured in turn.

use std::collections::HashSet;

use anyhow::Result;
use seekscope_client::Wanted;
use seekscope_report::bench::{SIDES_MAX, pairs_needed};
use seekscope_run::{BenchMeasurement, ClientKind, StorageFacts};
use seekscope_server::redact_uri;

use super::client_choice::choose;
use super::operation_options::{names_by_options, operation_options};
use super::sharding::Sharding;
use super::stage::Stage;
use super::target::{Target, is_cassandra};
use crate::args::{BenchTargetArgs, VersusArgs};
use crate::environment::Environment;
use crate::exit::Usage;
use crate::unrestored;

/// Opens the servers that the command line names. `uri` may come from elsewhere than [`BenchTargetArgs::uri`]. With
/// `sharding`, servers of which none is a router are refused.
pub async fn open(
    stage: &mut Stage,
    uri: Option<&str>,
    args: &BenchTargetArgs,
    versus: Option<&VersusArgs>,
    sharding: Option<&Sharding>,
    environment: &Environment,
) -> Result<Vec<Target>> {
    let interruption = stage.interruption.clone();
    let opening = async {
        let targets = targets(stage, uri, args, versus, environment).await?;
        // All of them before any is written to.
        for target in &targets {
            target.refuse_shard().await?;
        }
        if let Some(sharding) = sharding {
            sharding.ensure_router(&targets).await?;
        }
        Ok(targets)
    };
    let targets = interruption.or(opening).await?;
    for target in &targets {
        stage.note_target(target)?;
        let left = target.server().ok();
        let left =
            left.and_then(|server| unrestored::limitation(&environment.lease_folder, server));
        if let Some(limitation) = left {
            stage.session.limit(limitation);
            stage.measurement().is_left_changed = true;
        }
    }
    Ok(targets)
}

/// Says before anything runs that there are too few pairs to show a difference in any of this many figures.
pub fn say_if_too_few(stage: &Stage, versus: &VersusArgs, figures: usize) {
    let needed = pairs_needed(figures);
    if versus.are_several() && u64::from(versus.pairs) < needed {
        stage.progress.say(format!(
            "This run has {} pairs. With fewer than {needed}, hardly any difference can be shown, however large.",
            versus.pairs
        ));
    }
}

async fn targets(
    stage: &Stage,
    uri: Option<&str>,
    args: &BenchTargetArgs,
    versus: Option<&VersusArgs>,
    environment: &Environment,
) -> Result<Vec<Target>> {
    let others = versus.map_or(&[][..], |versus| &versus.vs[..]);
    match (uri, others, versus.and_then(|v| v.vs_config.as_ref())) {
        (Some(uri), [], _) => Ok(vec![Target::connect(uri, "", args.pid).await?]),
        (Some(first), others, _) => {
            let uris: Vec<&str> = std::iter::once(first)
                .chain(others.iter().map(String::as_str))
                .collect();
            if uris.len() > SIDES_MAX {
                let text = format!("at most {SIDES_MAX} servers can be compared at once");
                return Err(Usage(text).into());
            }
            let mut targets: Vec<Target> = Vec::new();
            for (uri, name) in uris.iter().zip(names_of(&uris)) {
                let pid = args.pid.filter(|_| targets.is_empty());
                let mut target = Target::connect(uri, &name, pid).await?;
                for other in &targets {
                    target.shares_data |= is_same_asked_otherwise(other, &target).await?;
                }
                targets.push(target);
            }
            Ok(with_like_clients(targets))
        }
        (None, _, None) => {
            let _step = stage.progress.step("starting a private local server");
            let parent = stage.session.data_folder(args.data_dir.as_deref())?;
            let target = Target::start_local(args, "", &[], &parent, environment).await?;
            Ok(vec![target])
        }
        (None, _, Some((name, values))) => {
            let mut targets = Vec::new();
            let parent = stage.session.data_folder(args.data_dir.as_deref())?;
            for value in values {
                let text = format!("starting a private local server with {name}={value}");
                let _step = stage.progress.step(text);
                let setting = [(name.clone(), value.clone())];
                targets
                    .push(Target::start_local(args, value, &setting, &parent, environment).await?);
            }
            Ok(targets)
        }
    }
}

/// Returns whether the two are one server, which is asked in another way, such as for another write concern. An error if
/// it is asked in the same way.
async fn is_same_asked_otherwise(first: &Target, second: &Target) -> Result<bool> {
    if !first.is_same_server(second).await {
        return Ok(false);
    }
    if operation_options(&first.uri) != operation_options(&second.uri) {
        return Ok(true);
    }
    Err(Usage(format!(
        "--vs {}: it is the server of {} under another name, asked in the same way; name a second server, or another \
         write concern (w=, journal=) or read preference for this one",
        second.facts.uri, first.facts.uri
    ))
    .into())
}

/// Makes the driver ask all of them if one can only be asked by it: two clients' costs are no difference of servers.
fn with_like_clients(mut targets: Vec<Target>) -> Vec<Target> {
    let needs_driver = targets.iter().find_map(|target| {
        let choice = choose(&target.uri, None, "admin", Wanted::Auto).ok()?;
        (choice.spec.kind() == ClientKind::Driver).then_some(choice.reason)
    });
    if let Some(why) = needs_driver {
        for target in targets
            .iter_mut()
            .filter(|target| !is_cassandra(&target.uri))
        {
            target.driver_because = Some(format!("of one of the servers {why}"));
        }
    }
    targets
}

/// Names the servers by host and port; if two of these are the same, by the options that set them apart, or by number.
fn names_of(uris: &[&str]) -> Vec<String> {
    const NUMBERS: [&str; SIDES_MAX] = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth",
    ];
    let hosts = uris.iter().map(|uri| {
        let shown = redact_uri(uri);
        let rest = shown
            .split_once("://")
            .map_or(shown.as_str(), |(_, rest)| rest);
        rest.split(['/', '?'])
            .next()
            .unwrap_or_default()
            .to_string()
    });
    let hosts: Vec<String> = hosts.collect();
    let mut seen = HashSet::new();
    match hosts.iter().all(|host| seen.insert(host)) {
        true => hosts,
        false => names_by_options(uris)
            .unwrap_or_else(|| NUMBERS.map(String::from)[..uris.len()].to_vec()),
    }
}

/// Returns the order of turns as (variant, repetition): each repetition has all variants, every second one in
/// the opposite order (ABBA), so that drift on the machine affects all of them alike.
pub fn order(variants: usize, repetitions: u32) -> Vec<(usize, u32)> {
    let turn = |repetition: u32| {
        let place = move |i: usize| match repetition % 2 {
            1 => i,
            _ => variants - 1 - i,
        };
        (0..variants).map(move |i| (place(i), repetition))
    };
    (1..=repetitions).flat_map(turn).collect()
}

/// Closes all targets; keeps the data of local servers if asked to.
pub async fn close(stage: &mut Stage, targets: Vec<Target>, keep: bool) -> Result<()> {
    for target in targets {
        let variant = target.variant.clone();
        let closed = target.close(keep).await?;
        note_size(stage.measurement(), &variant, closed.directory_bytes);
        if let Some(limitation) = closed.limitation {
            stage.limit(limitation);
        }
        if let Some(kept) = closed.kept {
            let text = format!("The local server's data is kept in {}", kept.display());
            stage.progress.say(text);
        }
    }
    Ok(())
}

/// Records the final size of the data for each step that left the data as they are at the end: as many documents, in
/// files of the same size.
fn note_size(measurement: &mut BenchMeasurement, variant: &str, directory_bytes: Option<u64>) {
    let steps = || {
        measurement
            .steps
            .iter()
            .filter(|step| step.variant == variant)
    };
    let last = steps()
        .filter_map(|step| step.storage_after.as_ref())
        .next_back();
    let Some(last) = last.cloned() else {
        return;
    };
    let is_same = |facts: &StorageFacts| {
        let sizes = |f: &StorageFacts| (f.documents, f.storage_bytes, f.index_bytes);
        sizes(facts) == sizes(&last)
    };
    let of_variant = measurement
        .steps
        .iter_mut()
        .filter(|step| step.variant == variant);
    let facts = of_variant.filter_map(|step| step.storage_after.as_mut());
    for facts in facts.filter(|facts| is_same(facts)) {
        facts.directory_bytes = directory_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_repetition_goes_back() {
        let turns: Vec<usize> = order(2, 2).into_iter().map(|(i, _)| i).collect();
        assert_eq!(turns, [0, 1, 1, 0]);
        let turns: Vec<(usize, u32)> = order(3, 3);
        assert_eq!(turns[3..6], [(2, 2), (1, 2), (0, 2)]);
        assert_eq!(turns.len(), 9);
    }

    #[test]
    fn variants_are_named_by_where_they_are() {
        let names = names_of(&["mongodb://u:secret@a:1/x", "mongodb://b:2/?w=1"]);
        assert_eq!(names, ["a:1", "b:2"]);
        assert_eq!(
            names_of(&["mongodb://a/", "mongodb://b/", "mongodb://a/?w=1"]),
            ["first", "second", "third"]
        );
        assert_eq!(
            names_of(&["mongodb://a/?w=1", "mongodb://a/?w=majority"]),
            ["w=1", "w=majority"]
        );
    }
}
