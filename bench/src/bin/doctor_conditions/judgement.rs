//! Was the doctor right? Its document against what was prepared and what the server says of itself.

use std::fmt;

use seekscope_bench::examined::Examined;
use seekscope_stats::median;
use serde_json::Value;

use crate::cases::Case;
use crate::own_words::OwnWords;
use crate::work::is_cold_scan;

/// What a terminal shows.
const FIRST_SCREEN: usize = 5;
const SCAN_TOLERANCE: f64 = 0.25;
const CHECKPOINT_TOLERANCE: f64 = 0.05;
/// Operations that were under way at either end are in one account and not in the other.
const WAITED_TOLERANCE: f64 = 0.1;
const PER_HOUR: &str = "s of waiting per hour";

/// One thing that was asked of the examination.
pub(crate) struct Check {
    what: &'static str,
    is_met: bool,
    figures: String,
}

impl Check {
    pub(crate) fn is_met(&self) -> bool {
        self.is_met
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_met { "met" } else { "MISSED" };
        write!(f, "{word:6}  {}: {}", self.what, self.figures)
    }
}

/// All that applies to this case. `repeated_s`: how long the work took each time.
pub(crate) fn judge(
    case: &Case,
    examined: &Examined,
    own: &OwnWords,
    repeated_s: &[f64],
) -> Vec<Check> {
    let found = examined.finding_ids();
    let mut checks = vec![
        first(case, &found),
        no_false(case, &found),
        waited(case, examined, own),
    ];
    if is_cold_scan(&case.work) {
        checks.push(scan_seconds(examined, repeated_s));
    }
    if case.checkpoint_every_s.is_some() {
        checks.push(checkpoint_seconds(examined, own));
    }
    checks
}

fn first(case: &Case, found: &[&str]) -> Check {
    let first = found.first().copied().unwrap_or("(none)");
    Check {
        what: "the first finding is the cause",
        is_met: case.cause.contains(&first),
        figures: format!("{first}, where {} is true", case.cause.join(" or ")),
    }
}

fn no_false(case: &Case, found: &[&str]) -> Check {
    let shown = found.iter().take(FIRST_SCREEN);
    let wrong: Vec<&str> = shown.copied().filter(|id| !case.is_true(id)).collect();
    Check {
        what: "nothing false in the first screen",
        is_met: wrong.is_empty(),
        figures: match wrong.is_empty() {
            true => found.join(", "),
            false => format!("false: {}; all: {}", wrong.join(", "), found.join(", ")),
        },
    }
}

/// A scan or build at a time waits an hour per hour at most; operations of YCSB as long as the server
/// counted that they took.
fn waited(case: &Case, examined: &Examined, own: &OwnWords) -> Check {
    let findings = examined.document["findings"]
        .as_array()
        .into_iter()
        .flatten();
    // What is claimed without a range of the gain is of the observed load, too.
    let of_waiting =
        findings.filter(|finding| finding["gain"].is_null() || finding["gain"]["unit"] == PER_HOUR);
    let claimed = of_waiting
        .filter_map(|finding| finding["saves_s_per_hour"].as_f64())
        .fold(0.0, |sum, s| sum + s);
    let limit = match case.work {
        crate::cases::Work::Repeated { .. } => 3600.0,
        crate::cases::Work::Ycsb { .. } => own.operations_s_per_s * 3600.0,
    };
    Check {
        what: "no more is claimed than was waited",
        is_met: claimed <= limit * (1.0 + WAITED_TOLERANCE),
        figures: format!("{claimed:.0} of {limit:.0} s per hour"),
    }
}

fn scan_seconds(examined: &Examined, repeated_s: &[f64]) -> Check {
    let durations = &examined.document["summary"]["answers"]["durations"];
    let scans = durations.as_array().into_iter().flatten();
    let of_aged = |one: &&Value| {
        one["job"] == "collection scan"
            && one["namespace"]
                .as_str()
                .is_some_and(|name| name.ends_with(".aged"))
    };
    let predicted_s = scans.filter(of_aged).find_map(|one| one["now_s"].as_f64());
    // The first finds the cache as the server's start left it.
    let measured_s = median(repeated_s);
    within(
        "predicted scan seconds",
        predicted_s,
        measured_s,
        SCAN_TOLERANCE,
    )
}

fn checkpoint_seconds(examined: &Examined, own: &OwnWords) -> Check {
    let said = &examined.document["summary"]["answers"]["checkpoints"];
    let longest_s = said["longest_s"].as_f64();
    let own_longest = own.checkpoints_s.iter().copied().reduce(f64::max);
    let what = "longest checkpoint, seconds";
    let check = within(what, longest_s, own_longest, CHECKPOINT_TOLERANCE);
    // One that outlasts the watch is said to have taken at least so long. The server counts it when it has ended, which
    // may be after the last question.
    let is_lower_bound = said["last_is_under_way"] == true;
    let is_true = longest_s.is_some_and(|said_s| own_longest.is_none_or(|own_s| said_s <= own_s));
    if check.is_met || !(is_lower_bound && is_true) {
        return check;
    }
    Check {
        what,
        is_met: true,
        figures: format!("at least {}", check.figures),
    }
}

fn within(what: &'static str, said: Option<f64>, truth: Option<f64>, tolerance: f64) -> Check {
    let shown = |value: Option<f64>| value.map_or("unknown".into(), |s| format!("{s:.2}"));
    let is_met = said
        .zip(truth)
        .is_some_and(|(said, truth)| (said / truth - 1.0).abs() <= tolerance);
    Check {
        what,
        is_met,
        figures: format!("{} said, {} measured", shown(said), shown(truth)),
    }
}
