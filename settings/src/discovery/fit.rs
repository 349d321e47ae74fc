//! Fits a knob's range to the value that was found.

use seekscope_run::tune::KnobValue;
use seekscope_tune::space::{Knob, Range, Scale, Space};

use crate::knob_file::KnobEntry;

const SPECIALS_MAX: usize = 4;
/// Divisor: a range whose cut-off upper end would be below its lower one begins at this fraction of the upper
/// end.
const LOW_SHARE: i64 = 4;

/// Converts percent to MiB.
pub(super) fn scale_to_memory(entry: &mut KnobEntry, memory_mib: u64) -> Result<(), String> {
    let too_big = "the memory of the server's host is beyond belief";
    let memory = i64::try_from(memory_mib).map_err(|_| too_big)?;
    let scaled = |percent: i64| memory.checked_mul(percent).map(|mib| mib / 100);
    let Range::Integer { low, high, .. } = &mut entry.knob.range else {
        return Err("percent of memory are whole numbers".into());
    };
    *low = scaled(*low).ok_or(too_big)?.max(1);
    *high = scaled(*high).ok_or(too_big)?;
    if let KnobValue::Integer(percent) = &mut entry.knob.default {
        *percent = scaled(*percent).ok_or(too_big)?;
    }
    entry.percent_of_memory = false;
    Ok(())
}

/// Makes the value the default. If it is outside the range, the range is widened: a server's present setting
/// works.
pub(super) fn set_default(knob: &mut Knob, value: KnobValue) -> Result<(), String> {
    let value = converted(knob, value)?;
    knob.default = value;
    if knob.share_of.is_some() || admitted(knob) {
        // Shares are checked together with the knob they refer to.
        return Ok(());
    }
    let number = knob.default.number();
    match (&mut knob.range, &knob.default, number) {
        (Range::Categorical { choices }, KnobValue::Text(text), _) => choices.push(text.clone()),
        (Range::Integer { low, high, scale }, KnobValue::Integer(value), _)
            if *scale == Scale::Linear || *value > 0 =>
        {
            (*low, *high) = ((*low).min(*value), (*high).max(*value));
        }
        (Range::Float { low, high, scale }, _, Some(value))
            if *scale == Scale::Linear || value > 0.0 =>
        {
            (*low, *high) = (low.min(value), high.max(value));
        }
        (_, _, Some(value)) if knob.special.len() < SPECIALS_MAX => knob.special.push(value),
        _ => {}
    }
    if admitted(knob) {
        return Ok(());
    }
    Err(format!(
        "its current value {} is not one that it can be given",
        knob.default
    ))
}

/// Returns whether the knob accepts its default, whatever it depends on.
fn admitted(knob: &Knob) -> bool {
    let alone = Knob {
        when: None,
        ..knob.clone()
    };
    Space::new(vec![alone], Vec::new()).is_ok()
}

/// Converts a value: servers and files write 1 for true, and 60.0 for 60.
fn converted(knob: &Knob, value: KnobValue) -> Result<KnobValue, String> {
    let odd = |value: &KnobValue| format!("its current value {value} is of another kind");
    Ok(match (&knob.range, value) {
        (Range::Bool, KnobValue::Integer(value @ (0 | 1))) => KnobValue::Bool(value == 1),
        (Range::Bool, value @ KnobValue::Bool(_)) => value,
        (Range::Categorical { .. }, KnobValue::Text(text)) if text.is_empty() => {
            return Err("its current value is empty".into());
        }
        (Range::Categorical { .. }, value) => KnobValue::Text(value.to_string()),
        (Range::Integer { .. } | Range::Ordinal { .. }, KnobValue::Float(number))
            if number.fract() == 0.0 && number.abs() < 9e15 =>
        {
            #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
            KnobValue::Integer(number as i64)
        }
        // Newer servers report numbers as texts where they also accept a word.
        (
            Range::Integer { .. } | Range::Float { .. } | Range::Ordinal { .. },
            KnobValue::Text(text),
        ) => match crate::engine_string::typed(&text) {
            value @ (KnobValue::Integer(_) | KnobValue::Float(_)) => value,
            other => return Err(odd(&other)),
        },
        (Range::Integer { .. }, value @ KnobValue::Integer(_)) => value,
        (
            Range::Float { .. } | Range::Ordinal { .. },
            value @ (KnobValue::Integer(_) | KnobValue::Float(_)),
        ) => value,
        (_, value) => return Err(odd(&value)),
    })
}

/// Cuts off the range above `max`; returns whether anything was cut.
pub(super) fn cap(entry: &mut KnobEntry, max: f64) -> bool {
    match &mut entry.knob.range {
        Range::Integer { low, high, .. } if *high as f64 > max => {
            #[expect(clippy::cast_possible_truncation, reason = "below `high`")]
            let max = max as i64;
            *high = max.max(1);
            if low >= high {
                *low = (*high / LOW_SHARE).max(1);
            }
            true
        }
        Range::Float { low, high, .. } if *high > max => {
            *high = max.max(1.0);
            if low >= high {
                *low = *high / LOW_SHARE as f64;
            }
            true
        }
        Range::Ordinal { values } => {
            let before = values.len();
            values.retain(|value| *value <= max);
            values.len() < before
        }
        _ => false,
    }
}
