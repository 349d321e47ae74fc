//! blkparse's text in its default format (blkparse(1), "Default output"):
//! `MAJOR,MINOR CPU SEQUENCE SECONDS.NANOSECONDS PID ACTION RWBS [SECTOR + SECTORS] [PROCESS]`.
//! A request is one event: from its issue to the driver (D) to its completion (C).

use std::collections::HashMap;

use seekscope_run::{BlockRequest, IoEvent, IoFlags, IoOp};

use crate::fio::number;
use crate::import::{Import, LineReader, LineResult, RecordSink, malformed};

/// The most requests issued whose completion has not been seen. No disk keeps this many in flight.
const IN_FLIGHT_MAX: usize = 1 << 18;

type Key = (u32, u32, u64, IoOp);

#[derive(Default)]
pub(crate) struct Reader {
    in_flight: HashMap<Key, Issue>,
}

/// A request sent to the driver.
struct Issue {
    t_ns: u64,
    pid: u32,
}

/// A line up to its action.
pub(crate) struct Head<'a> {
    major: u32,
    minor: u32,
    t_ns: u64,
    pid: u32,
    action: &'a str,
    rwbs: &'a str,
    rest: &'a str,
}

/// Splits a line; `None` for lines that do not begin like one of blkparse's records.
pub(crate) fn head(text: &str) -> Option<Head<'_>> {
    let mut rest = text;
    let mut field = || {
        let trimmed = rest.trim_start();
        let end = trimmed
            .find(|c: char| c.is_ascii_whitespace())
            .unwrap_or(trimmed.len());
        let (field, after) = trimmed.split_at(end);
        rest = after;
        (!field.is_empty()).then_some(field)
    };
    let (major, minor) = field()?.split_once(',')?;
    let _cpu: u32 = field()?.parse().ok()?;
    let _sequence: u64 = field()?.parse().ok()?;
    let t_ns = seconds_ns(field()?)?;
    Some(Head {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
        t_ns,
        pid: field()?.parse().ok()?,
        action: field()?,
        rwbs: field()?,
        rest: rest.trim(),
    })
}

/// Parses `SECONDS.FRACTION` into ns; up to nine digits of the fraction count.
pub(crate) fn seconds_ns(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = &fraction[..fraction.len().min(9)];
    let fraction_ns =
        digits.parse::<u64>().ok()? * 10u64.pow(9 - u32::try_from(digits.len()).ok()?);
    seconds
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000_000_000)?
        .checked_add(fraction_ns)
}

impl LineReader for Reader {
    fn line<S: RecordSink>(&mut self, import: &mut Import<'_, S>, text: &str) -> LineResult<()> {
        let Some(head) = head(text) else {
            let first = text.trim_start().split_ascii_whitespace().next();
            if first.is_some_and(|f| f.starts_with(|c: char| c.is_ascii_digit()) && f.contains(','))
            {
                return Err(malformed("a record that is incomplete or holds no numbers"));
            }
            import.skip("a summary, or an empty line");
            return Ok(());
        };
        match head.action {
            "D" => self.issue(import, &head),
            "C" => self.complete(import, &head),
            "R" => {
                if let (Some(op), Ok((sector, _, _))) = (operation(head.rwbs), payload(head.rest)) {
                    self.in_flight.remove(&(head.major, head.minor, sector, op));
                }
                import.skip("a request put back into its queue");
                Ok(())
            }
            _ => {
                import.skip("a step of a request before its issue (Q, G, I, M, …), or a message");
                Ok(())
            }
        }
    }

    fn end<S: RecordSink>(&mut self, import: &mut Import<'_, S>) {
        for _ in self.in_flight.drain() {
            import.skip("an issue without its completion");
        }
    }
}

impl Reader {
    fn issue<S: RecordSink>(
        &mut self,
        import: &mut Import<'_, S>,
        head: &Head<'_>,
    ) -> LineResult<()> {
        let Some(op) = operation(head.rwbs) else {
            import.skip("a request that neither reads, writes, flushes nor discards");
            return Ok(());
        };
        let (sector, _, process) = payload(head.rest)?;
        if self.in_flight.len() >= IN_FLIGHT_MAX {
            import.skip("too many requests in flight to pair them");
            return Ok(());
        }
        import.thread(head.pid, head.pid, process)?;
        let issue = Issue {
            t_ns: head.t_ns,
            pid: head.pid,
        };
        let key = (head.major, head.minor, sector, op);
        if self.in_flight.insert(key, issue).is_some() {
            import.skip("an issue without its completion");
        }
        Ok(())
    }

    fn complete<S: RecordSink>(
        &mut self,
        import: &mut Import<'_, S>,
        head: &Head<'_>,
    ) -> LineResult<()> {
        let Some(op) = operation(head.rwbs) else {
            import.skip("a request that neither reads, writes, flushes nor discards");
            return Ok(());
        };
        let (sector, sectors, error) = payload(head.rest)?;
        let key = (head.major, head.minor, sector, op);
        let Some(issue) = self.in_flight.remove(&key) else {
            import.skip("a completion whose issue is not in the trace");
            return Ok(());
        };
        let bytes = sectors
            .checked_mul(512)
            .and_then(|bytes| i32::try_from(bytes).ok());
        let Some(bytes) = bytes else {
            // Discards may be this long; a read or write never is.
            import.skip("a request of 2 GiB or more");
            return Ok(());
        };
        let error: i32 = error.parse().unwrap_or(0);
        let file_id = import.disk_id(head.major, head.minor)?;
        import.event(&IoEvent {
            t_ns: issue.t_ns,
            pid: issue.pid,
            tid: issue.pid,
            file_id,
            op,
            flags: IoFlags(flags(head.rwbs)),
            offset: None,
            length: bytes.unsigned_abs(),
            latency_ns: head.t_ns.saturating_sub(issue.t_ns),
            result: if error == 0 {
                bytes
            } else {
                -error.saturating_abs()
            },
            device_read_bytes: 0,
            request: Some(BlockRequest {
                disk_major: head.major,
                disk_minor: head.minor,
                sector,
            }),
        })
    }
}

/// Returns the sector, the number of sectors, and the text in brackets: the process, or the error
/// of a completion. A flush has neither sector nor length.
fn payload(text: &str) -> LineResult<(u64, u64, &str)> {
    let (place, bracket) = match text.split_once('[') {
        Some((place, bracket)) => (place.trim(), bracket),
        None => (text, ""),
    };
    let bracket = bracket.rsplit_once(']').map_or(bracket, |(inner, _)| inner);
    if place.is_empty() {
        return Ok((0, 0, bracket));
    }
    let Some((sector, sectors)) = place.split_once('+') else {
        return Ok((number(place, "sector")?, 0, bracket));
    };
    // With blkparse's -t, the time in the driver follows in parentheses.
    let sectors = sectors.split('(').next().unwrap_or_default().trim();
    Ok((
        number(sector.trim(), "sector")?,
        number(sectors, "number of sectors")?,
        bracket,
    ))
}

/// Returns the operation that an RWBS word stands for: a leading F is a flush before a write, a
/// later one means force unit access.
fn operation(rwbs: &str) -> Option<IoOp> {
    let has = |letter| rwbs.contains(letter);
    if has('D') {
        Some(IoOp::BlockDiscard)
    } else if has('R') {
        Some(IoOp::BlockRead)
    } else if has('W') {
        Some(IoOp::BlockWrite)
    } else if has('F') {
        Some(IoOp::BlockFlush)
    } else {
        None
    }
}

fn flags(rwbs: &str) -> u16 {
    let mut flags = 0;
    if rwbs.contains('A') {
        flags |= IoFlags::READ_AHEAD;
    }
    if rwbs.contains('S') {
        flags |= IoFlags::SYNCHRONOUS;
    }
    if rwbs.contains('M') {
        flags |= IoFlags::METADATA;
    }
    if rwbs
        .split_once('W')
        .is_some_and(|(_, after)| after.contains('F'))
    {
        flags |= IoFlags::FORCE_UNIT_ACCESS;
    }
    flags
}
