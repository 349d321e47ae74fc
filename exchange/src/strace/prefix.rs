//! The part of a line before the call: `[pid N]` or `N`, and a time in one of strace's forms.

use crate::blkparse::seconds_ns;

/// A line split into its parts.
pub(super) struct PrefixedLine<'a> {
    /// The thread; 0 if the line names none, as while there is only one.
    pub(super) tid: u32,
    pub(super) time: Option<Time>,
    /// The call, signal or end.
    pub(super) rest: &'a str,
}

/// A time as printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// `SECONDS.FRACTION`, ns: since 1970 with -ttt, since the line before with -r.
    Seconds(u64),
    /// `HH:MM:SS`, with or without a fraction, as with -t and -tt; ns since midnight.
    OfDay(u64),
}

/// Splits a line; `None` if nothing could follow the prefix.
pub(super) fn split(text: &str) -> Option<PrefixedLine<'_>> {
    let mut rest = text.trim_start();
    let mut tid = None;
    if let Some(bracketed) = rest.strip_prefix("[pid") {
        let (number, after) = bracketed.split_once(']')?;
        tid = Some(number.trim().parse().ok()?);
        rest = after.trim_start();
    } else if let Some((word, after)) = rest.split_once(' ')
        && let Ok(number) = word.parse::<u32>()
    {
        tid = Some(number);
        rest = after.trim_start();
    }
    let mut time = None;
    if let Some((word, after)) = rest.split_once(' ')
        && let Some(found) = parse_time(word)
    {
        time = Some(found);
        rest = after.trim_start();
        // -ttt together with -r: `TIME (+     0.000123) call`.
        if let Some(both) = rest.strip_prefix("(+") {
            rest = both.split_once(')')?.1.trim_start();
        }
    }
    // A whole number alone can be a time of -t with one process; strace does not pad thread ids
    // that way.
    (!rest.is_empty()).then_some(PrefixedLine {
        tid: tid.unwrap_or(0),
        time,
        rest: rest.trim_end(),
    })
}

fn parse_time(word: &str) -> Option<Time> {
    if !word.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut parts = word.splitn(3, ':');
    let (first, second, third) = (parts.next()?, parts.next(), parts.next());
    match (second, third) {
        (None, None) if word.contains('.') => seconds_ns(first).map(Time::Seconds),
        (Some(minutes), Some(seconds)) => {
            let hours: u64 = first.parse::<u8>().ok()?.into();
            let minutes: u64 = minutes.parse::<u8>().ok()?.into();
            let whole_ns = (hours * 3600 + minutes * 60) * 1_000_000_000;
            seconds_ns(seconds)?.checked_add(whole_ns).map(Time::OfDay)
        }
        _ => None,
    }
}

/// Printed times below this are differences (-r), others are dates (-ttt): no call takes three
/// years.
const SINCE_1970_MIN_NS: u64 = 100_000_000 * 1_000_000_000;
const DAY_NS: u64 = 86_400 * 1_000_000_000;

/// Converts printed times to a clock that does not go back at midnight.
#[derive(Debug, Default)]
pub(super) struct Clock {
    now_ns: u64,
    seen: Option<Seen>,
    days_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Since1970,
    Differences,
    OfDay,
}

impl Clock {
    /// Returns the start of a line's call, ns.
    pub(super) fn start_ns(&mut self, time: Option<Time>) -> u64 {
        match time {
            Some(Time::Seconds(ns)) => {
                let seen = *self.seen.get_or_insert(if ns >= SINCE_1970_MIN_NS {
                    Seen::Since1970
                } else {
                    Seen::Differences
                });
                self.now_ns = if seen == Seen::Since1970 {
                    ns
                } else {
                    self.now_ns.saturating_add(ns)
                };
            }
            Some(Time::OfDay(ns)) => {
                self.seen.get_or_insert(Seen::OfDay);
                let today = self.days_ns.saturating_add(ns);
                // Lines of several threads may be slightly out of order; a new day shows as one
                // large step back.
                if today.saturating_add(DAY_NS / 2) < self.now_ns {
                    self.days_ns = self.days_ns.saturating_add(DAY_NS);
                }
                self.now_ns = self.days_ns.saturating_add(ns);
            }
            // strace's own messages have no time, and without -t, -tt, -ttt or -r no line has one.
            None => self.now_ns = self.now_ns.saturating_add(1),
        }
        self.now_ns
    }

    pub(super) fn since_1970(&self) -> bool {
        self.seen == Some(Seen::Since1970)
    }

    pub(super) fn untimed(&self) -> bool {
        self.seen.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        let parts = |text| split(text).map(|l| (l.tid, l.time, l.rest));
        let second = 1_000_000_000;
        assert_eq!(parts("close(3) = 0"), Some((0, None, "close(3) = 0")));
        assert_eq!(
            parts("[pid    12] close(3) = 0"),
            Some((12, None, "close(3) = 0"))
        );
        assert_eq!(
            parts("12 1700000000.000001 close(3) = 0"),
            Some((
                12,
                Some(Time::Seconds(1_700_000_000 * second + 1000)),
                "close(3) = 0"
            ))
        );
        assert_eq!(
            parts("12 00:01:02.5 (+     0.000123) close(3) = 0"),
            Some((
                12,
                Some(Time::OfDay(62 * second + second / 2)),
                "close(3) = 0"
            ))
        );
        assert_eq!(
            parts("     0.000123 close(3) = 0"),
            Some((0, Some(Time::Seconds(123_000)), "close(3) = 0"))
        );
        assert_eq!(parts(""), None);
        assert_eq!(parts("[pid 4"), None);
    }

    #[test]
    fn a_day_ends_and_differences_add_up() {
        let mut clock = Clock::default();
        let late = clock.start_ns(Some(Time::OfDay(DAY_NS - 5)));
        let early = clock.start_ns(Some(Time::OfDay(7)));
        assert_eq!(early - late, 12);
        let mut clock = Clock::default();
        clock.start_ns(Some(Time::Seconds(0)));
        clock.start_ns(Some(Time::Seconds(5)));
        assert_eq!(clock.start_ns(Some(Time::Seconds(6))), 11);
        assert!(!clock.since_1970() && !clock.untimed());
    }
}
