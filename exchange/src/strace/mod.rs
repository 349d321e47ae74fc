//! strace's output with `-f` and one of `-ttt`, `-tt`, `-t` or `-r`, and with `-T` and `-y` if
//! given.
//!
//! The file of a descriptor comes from `-y`, otherwise from the opens seen; the offsets of plain
//! reads and writes come from the opens and seeks seen. Parts: `prefix` (thread and time), `syntax`
//! (a call's arguments and result), `processes` (which threads share descriptors), `calls` (the
//! meaning of each call), `transfer` (reads, writes and syncs).

mod calls;
mod prefix;
mod processes;
mod syntax;
mod transfer;

use std::collections::HashMap;

use crate::import::{Import, LineReader, LineResult, RecordSink, malformed};
use prefix::Clock;
use processes::Processes;
use syntax::Call;

/// The most calls interrupted by other threads' lines. A thread has one at a time.
const UNFINISHED_MAX: usize = 1 << 16;

#[derive(Default)]
pub(crate) struct Reader {
    clock: Clock,
    processes: Processes,
    /// Start and text of the call whose end has not been seen yet, by thread.
    unfinished: HashMap<u32, (u64, String)>,
    latency_seen: bool,
}

/// Returns whether this looks like strace's output, for recognising the format.
pub(crate) fn is_line(text: &str) -> bool {
    let Some(line) = prefix::split(text) else {
        return false;
    };
    let rest = line.rest;
    rest.starts_with("+++ ") && rest.ends_with(" +++")
        || rest.starts_with("--- SIG")
        || rest.contains("<unfinished ...>")
        || rest.starts_with("<... ")
        || matches!(Call::parse(rest), Ok(Some(_)))
}

impl LineReader for Reader {
    fn line<S: RecordSink>(&mut self, import: &mut Import<'_, S>, text: &str) -> LineResult<()> {
        let Some(line) = prefix::split(text) else {
            import.skip("it is not a line written by strace");
            return Ok(());
        };
        let t_ns = self.clock.start_ns(line.time);
        import.summary.since_1970 = self.clock.since_1970();
        import.summary.untimed = self.clock.untimed();
        let tid = line.tid;
        let rest = line.rest;
        if rest.starts_with("+++ ") || rest.starts_with("--- ") {
            if rest.starts_with("+++ ") {
                self.processes.ended(tid);
                self.unfinished.remove(&tid);
            }
            import.skip("a signal, or the end of a process");
            return Ok(());
        }
        if rest.ends_with("<detached ...>") {
            import.skip("a call that does not end");
            return Ok(());
        }
        if let Some(beginning) = rest.strip_suffix("<unfinished ...>") {
            if self.unfinished.len() >= UNFINISHED_MAX {
                return Err(crate::import::LineError::TooManyNames);
            }
            self.processes.may_fork(tid, beginning);
            let text = beginning.trim_end().to_string();
            self.unfinished.insert(tid, (t_ns, text));
            import.skip("the first half of a call that spans two lines");
            return Ok(());
        }
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let Some((_, end)) = resumed.split_once(" resumed>") else {
                return Err(malformed("a resumed call that is not marked as one"));
            };
            let Some((start_ns, beginning)) = self.unfinished.remove(&tid) else {
                import.skip("the end of a call whose beginning is not in the trace");
                return Ok(());
            };
            return self.call(import, tid, start_ns, &(beginning + end));
        }
        self.call(import, tid, t_ns, rest)
    }

    fn end<S: RecordSink>(&mut self, import: &mut Import<'_, S>) {
        for _ in self.unfinished.drain() {
            import.skip("a call that does not end");
        }
    }
}

impl Reader {
    fn call<S: RecordSink>(
        &mut self,
        import: &mut Import<'_, S>,
        tid: u32,
        t_ns: u64,
        text: &str,
    ) -> LineResult<()> {
        match Call::parse(text) {
            Ok(Some(call)) => {
                self.latency_seen |= call.latency_ns.is_some();
                import.summary.without_latency = !self.latency_seen;
                calls::take(import, &mut self.processes, tid, t_ns, &call)
            }
            Ok(None) => {
                import.skip("it is not a line written by strace");
                Ok(())
            }
            Err(reason) if calls::matters(syntax::name_of(text)) => Err(malformed(reason)),
            Err(_) => {
                import.skip("a call that does not touch files");
                Ok(())
            }
        }
    }
}
