//! Contains sentences about the order of reads, and about read-ahead.

use seekscope_run::{DiskMeasurement, ReadAdvice, StepGroup};

use super::super::steps::{Measured, NEARLY_ALL, Orders, Window, WindowPoint, of_group, windows};
use super::block;
use crate::numbers::{format_mb, format_rate, format_share, format_times};

/// Gains below this do not repay a rewrite, and may be noise.
const WORTH_IT: f64 = 1.5;
/// Less order is no faster than more of it, but for noise.
const NOT_FASTER: f64 = 1.1;
/// A larger window that fetches less than this share of what a smaller one did reads what that left in memory.
const FETCHES_LESS: f64 = 0.5;
/// Bytes fetched per requested byte that are worth mentioning.
const WASTEFUL: f64 = 2.0;

pub(super) fn order_gain(measurement: &DiskMeasurement) -> Option<String> {
    let orders = Orders::of(measurement);
    let (in_order, shuffled, gain) = (orders.in_order?, orders.shuffled?, orders.gain()?);
    let evidence = format!(
        "{} blocks of {} per second in disk order, {} shuffled",
        format_rate(in_order.job.iops()),
        block(in_order.facts().block_bytes),
        format_rate(shuffled.job.iops())
    );
    let times = format_times(gain);
    if let Some((blocks, of_runs)) = faster_runs(&orders) {
        return Some(format!(
            "What an ordered rewrite gains cannot be determined: all blocks in order were read \
             {times} times as fast as shuffled ones ({evidence}), but runs of {blocks} in order {} \
             times as fast. Measure again with a larger --size.",
            format_times(of_runs)
        ));
    }
    Some(match gain {
        gain if gain < NEARLY_ALL => format!(
            "What an ordered rewrite gains cannot be determined: all blocks in order were read \
             more slowly than shuffled ones ({evidence}), which the order cannot explain, but \
             other work on the host may. Measure again with a larger --size."
        ),
        gain if gain >= WORTH_IT => format!(
            "An ordered rewrite could make a cold scan up to {times} times faster: {evidence}."
        ),
        gain if gain > 1.0 => format!(
            "Order hardly matters on this disk: an ordered rewrite could make a cold scan at most \
             {times} times faster ({evidence})."
        ),
        _ => format!("Order does not matter on this disk: {evidence}."),
    })
}

/// Returns how many times as fast as shuffled blocks all blocks in order were read, unless that cannot be told.
pub(super) fn told_gain(measurement: &DiskMeasurement) -> Option<f64> {
    let orders = Orders::of(measurement);
    let told = |gain: &f64| *gain >= NEARLY_ALL && faster_runs(&orders).is_none();
    orders.gain().filter(told)
}

/// Returns the runs of this many blocks in order that were read this many times as fast as shuffled ones, where all
/// blocks in order hardly were: what lies in order as a whole cannot be slower than what does so in parts, but for
/// noise and odd read-ahead.
fn faster_runs(orders: &Orders<'_>) -> Option<(u64, f64)> {
    orders.gain().filter(|gain| *gain < WORTH_IT)?;
    let shuffled = orders.shuffled?.job.iops();
    let of_runs = orders
        .runs
        .iter()
        .map(|(blocks, run)| (*blocks, run.job.iops() / shuffled));
    of_runs
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .filter(|(_, times)| *times >= WORTH_IT)
}

pub(super) fn partial_order(measurement: &DiskMeasurement) -> Option<String> {
    let orders = Orders::of(measurement);
    let whole = orders.in_order?.job.iops();
    // Where even full order gains little, partial order is not worth mentioning.
    orders.gain().filter(|&gain| gain >= WORTH_IT)?;
    if orders
        .runs
        .iter()
        .any(|(_, m)| m.job.iops() > NOT_FASTER * whole)
    {
        return Some(
            "Short runs of blocks in order were read faster than all blocks in order, so these \
             figures do not show how much order is enough: measure again with a larger --size."
                .into(),
        );
    }
    let parts: Vec<String> = orders
        .runs
        .iter()
        .map(|(blocks, m)| {
            let share = format_share(m.job.iops() / whole);
            format!("runs of {blocks} blocks in order reach {share} of that speed")
        })
        .collect();
    let (_, shortest) = orders.runs.last()?;
    let verdict = if shortest.job.iops() >= whole / 2.0 {
        "short stretches of order are enough"
    } else {
        "only long stretches of order pay in full"
    };
    Some(format!(
        "Order need not be perfect: {}; {verdict}.",
        parts.join(", ")
    ))
}

/// Returns the smallest window with nearly the best rate in order, and that best rate.
fn enough<'a>(points: &[WindowPoint<'a>]) -> Option<(Window, Measured<'a>)> {
    let in_order = || points.iter().filter_map(|p| Some((p.window, p.in_order?)));
    let best = in_order()
        .map(|(_, m)| m.job.bytes_per_s())
        .reduce(f64::max)?;
    in_order().find(|(_, m)| m.job.bytes_per_s() >= NEARLY_ALL * best)
}

pub(super) fn read_ahead(measurement: &DiskMeasurement) -> Option<String> {
    let points = windows(measurement);
    let (window, there) = enough(&points)?;
    let smallest = points.iter().find_map(|p| Some((p.window, p.in_order?)))?;
    let mb = |m: &Measured<'_>| format!("{} MB/s", format_mb(m.job.bytes_per_s()));
    let rate = |m: &Measured<'_>| m.job.bytes_per_s();
    let larger = points.iter().filter_map(|p| Some((p.window, p.in_order?)));
    let slower = larger
        .filter(|(size, _)| matches!(size, Window::Bytes(_)) && *size > window)
        .filter(|(_, m)| rate(m) < NEARLY_ALL * rate(&there))
        .min_by(|a, b| rate(&a.1).total_cmp(&rate(&b.1)))
        .map(|(size, m)| format!("{} was slower here, {}", window_words(size), mb(&m)));
    let words = window_words(window);
    Some(match (smallest.0 == window, slower) {
        (true, None) => format!(
            "Scans do not need more read-ahead: {words} already gives {}.",
            mb(&there)
        ),
        (true, Some(slower)) => format!(
            "Scans do not need more read-ahead: {words} already gives {}, and {slower}.",
            mb(&there)
        ),
        (false, slower) => {
            let least = format!("{} with {}", mb(&smallest.1), window_words(smallest.0));
            match slower {
                None => format!(
                    "Scans need {words} or more: {} with that, {least}.",
                    mb(&there)
                ),
                Some(slower) => format!(
                    "For scans, {words} was best: {} with that, {least}; {slower}.",
                    mb(&there)
                ),
            }
        }
    })
}

pub(super) fn read_ahead_random(measurement: &DiskMeasurement) -> Option<String> {
    let points = windows(measurement);
    let random = || points.iter().filter_map(|p| Some((p.window, p.random?)));
    let mut most_fetched = 0.0;
    let from_memory = random().any(|(_, m)| {
        let fetched = m.fetched_per_byte().unwrap_or(most_fetched);
        let is_less = fetched < FETCHES_LESS * most_fetched;
        most_fetched = f64::max(most_fetched, fetched);
        is_less
    });
    if from_memory {
        return Some(
            "These figures do not show what read-ahead costs random reads: it brought so much of \
             the file into memory that later reads found it there; measure with a larger --size."
                .into(),
        );
    }
    let rate = |m: &Measured<'_>| m.job.iops();
    let (best_window, best) = random().max_by(|a, b| rate(&a.1).total_cmp(&rate(&b.1)))?;
    let (worst_window, worst) = random().min_by(|a, b| rate(&a.1).total_cmp(&rate(&b.1)))?;
    let loss = 1.0 - rate(&worst) / rate(&best);
    if loss < 1.0 - NEARLY_ALL {
        return Some(format!(
            "Read-ahead makes no difference to random reads: {} per second with every \
             setting that was tried.",
            format_rate(rate(&worst))
        ));
    }
    Some(format!(
        "Random reads lose {} with {}: {} per second, {} with {}.",
        format_share(loss),
        window_words(worst_window),
        format_rate(rate(&worst)),
        format_rate(rate(&best)),
        window_words(best_window)
    ))
}

/// Describes a window for the middle of a sentence.
fn window_words(window: Window) -> String {
    match window {
        Window::Off => "no read-ahead".into(),
        Window::Bytes(bytes) => format!("{} of read-ahead", block(bytes)),
        Window::Device => "the device's own read-ahead".into(),
        Window::Advised => "sequential advice".into(),
    }
}

pub(super) fn mmap(measurement: &DiskMeasurement) -> Option<String> {
    let best = |advised: bool| {
        of_group(measurement, StepGroup::Mmap)
            .filter(|m| (m.facts().advice == ReadAdvice::Random) == advised)
            .max_by(|a, b| a.job.iops().total_cmp(&b.job.iops()))
    };
    let (advised, plain) = (best(true), best(false));
    let rate = |m: &Measured<'_>| format_rate(m.job.iops());
    let mut text = match (&advised, &plain) {
        (Some(advised), Some(plain)) => format!(
            "A memory-mapped engine takes {} cold page faults per second with random \
             advice and {} without",
            rate(advised),
            rate(plain)
        ),
        (Some(one), None) => format!(
            "A memory-mapped engine takes {} cold page faults per second with random advice",
            rate(one)
        ),
        (None, Some(one)) => format!(
            "A memory-mapped engine takes {} page faults per second without advice",
            rate(one)
        ),
        (None, None) => return None,
    };
    if let Some((m, fetched)) = plain.and_then(|m| Some((m, m.fetched_per_byte()?))) {
        if fetched > WASTEFUL {
            text.push_str(&format!(
                "; without it, each fault of {} reads {} times the bytes requested, which fills \
                 the page cache with data that was not requested",
                block(m.facts().block_bytes),
                format_times(fetched)
            ));
        } else if fetched < NEARLY_ALL {
            text.push_str(&format!(
                "; without it, {} of the bytes were in memory already, read around earlier faults, \
                 so that this rate does not describe the disk",
                format_share(1.0 - fetched)
            ));
        }
    }
    Some(text + ".")
}
