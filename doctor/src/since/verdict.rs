//! Says in words what became of a finding.

use seekscope_run::{Finding, Gain};

use super::acted::Acted;
use super::measured::Measured;
use super::printed::{figure, predicted};
use super::work;

/// What is printed with three digits is not told apart beyond them.
const ROUNDING: f64 = 0.005;

pub(super) fn verdict(finding: &Finding, change: &str, found: &Measured, acted: Acted) -> String {
    let gain = predicted(finding);
    let untold = found.untold.as_ref();
    if let Some(why) = untold.filter(|_| change == "unknown" || gain.is_some()) {
        return match change {
            "same" => format!("it is as it was; what it costs now cannot be told: {why}"),
            _ => format!("cannot be told: {why}"),
        };
    }
    let Some(gain) = &gain else {
        return match change {
            "same" => "it is as it was; nothing was predicted".into(),
            _ => "nothing was predicted".into(),
        };
    };
    match (found.before, found.after) {
        (Some(_), Some(_)) if change == "same" => {
            let scaled = found.at_work_of_now.map(|_| for_which_work(found));
            let scaled = scaled.unwrap_or_default();
            match acted {
                Acted::Not(undone) => {
                    let is_so = undone.in_words();
                    format!("nothing changed{scaled}, and it was not acted on: {is_so}")
                }
                Acted::Done => format!("nothing changed{scaled}, although it was acted on"),
                Acted::Unknown => {
                    format!("nothing changed{scaled}: not acted on, or without effect")
                }
            }
        }
        (Some(before), Some(after)) => {
            let told = against_prediction(gain, before - after);
            format!("{told}{}", behind_comma(found))
        }
        _ => {
            let what = match change {
                "gone" => "cannot be told what that saved",
                _ => "cannot be told",
            };
            format!(
                "{what}: it was not measured in both runs, or its files were not used this time"
            )
        }
    }
}

/// Says how much worse it became although, or because, nobody acted on it.
pub(super) fn worse_by_itself(finding: &Finding, found: &Measured) -> String {
    let more = found
        .before
        .zip(found.after)
        .map(|(before, after)| after - before);
    let more = more.map_or("more".into(), |more| format!("{} more", figure(more)));
    let unit = predicted(finding).map_or_else(String::new, |gain| format!(" {}", gain.unit));
    format!(
        "what it advises was not done, and it became worse: {more}{unit}{}",
        behind_comma(found)
    )
}

fn behind_comma(found: &Measured) -> String {
    match for_which_work(found) {
        work if work.is_empty() => work,
        work => format!(",{work}"),
    }
}

/// Says for which work figures are told, where that matters, and what the one of now is without that.
fn for_which_work(found: &Measured) -> String {
    let Some(work) = found.work.as_ref().map(work::in_words) else {
        return String::new();
    };
    let as_it_is = found.at_work_of_now.map_or_else(String::new, |s| {
        format!("; at the work of now it is {}", figure(s))
    });
    format!(" for the work of then ({work}{as_it_is})")
}

fn against_prediction(gain: &Gain, saved: f64) -> String {
    let Gain {
        low, high, unit, ..
    } = gain;
    if saved < 0.0 {
        let more = figure(-saved);
        return format!(
            "it became worse: {more} {unit} more, although acting on it was predicted to save time"
        );
    }
    let word = match saved {
        s if s < *low * (1.0 - ROUNDING) => "less than predicted",
        s if s > *high * (1.0 + ROUNDING) => "more than predicted",
        _ => "as predicted",
    };
    let [saved, low, high] = [saved, *low, *high].map(figure);
    format!("{word}: saved {saved} {unit}, predicted {low} to {high}")
}
