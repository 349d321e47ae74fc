//! Translates the arguments to the tracer's options.

use std::io::IsTerminal;

use anyhow::Result;
use seekscope_run::IoKind;
use seekscope_trace::{BackendChoice, Filter, Group, RequestScope, Sampling, TraceOptions};

use crate::args::{BackendName, OpName, RecordArgs};
use crate::exit::Usage;

/// Checks what clap cannot.
pub fn check(args: &RecordArgs) -> Result<()> {
    if args.mode.live && !std::io::stderr().is_terminal() {
        let why = "--live draws on the terminal, and stderr is not a terminal";
        return Err(Usage(why.into()).into());
    }
    let only_counts = [OpName::Read, OpName::Write, OpName::Sync];
    if args.mode.aggregate && args.what.op.iter().any(|op| !only_counts.contains(op)) {
        let why = "--aggregate counts only system calls: use --op read, write or sync";
        return Err(Usage(why.into()).into());
    }
    let requests = args.what.op.is_empty() && !args.mode.aggregate;
    if args.what.whole_disk && !requests && !args.what.op.contains(&OpName::Block) {
        let why = "--whole-disk selects disk requests: add `block` to --op";
        return Err(Usage(why.into()).into());
    }
    if args.mode.aggregate && args.mode.interval.is_zero() {
        return Err(Usage("--interval must be above 0".into()).into());
    }
    Ok(())
}

/// Applies filters and mode.
pub fn apply(args: &RecordArgs, options: &mut TraceOptions) {
    let what = &args.what;
    options.kinds = kinds(&what.op);
    options.groups = groups(args);
    options.requests = match what.whole_disk {
        true => RequestScope::WholeDisk,
        false => RequestScope::TracedFiles,
    };
    options.filter = Filter {
        paths: what.file.iter().chain(&what.directory).cloned().collect(),
        devices_of: what.device.clone(),
        latency_min: what.min_latency.unwrap_or_default(),
    };
    options.sampling = what.sample.map(|one_in| Sampling {
        one_in,
        region_bytes: what.sample_region,
    });
    options.only_totals = args.mode.aggregate;
    options.ring_bytes = u32::try_from(args.mode.buffer).unwrap_or(u32::MAX);
    options.backend = match args.mode.backend {
        BackendName::Auto => BackendChoice::Auto,
        BackendName::TpBtf => BackendChoice::TpBtf,
        BackendName::Tracepoint => BackendChoice::Tracepoint,
    };
}

/// Returns the kinds of system calls.
fn kinds(ops: &[OpName]) -> Vec<IoKind> {
    let all = [
        (OpName::Read, IoKind::Read),
        (OpName::Write, IoKind::Write),
        (OpName::Sync, IoKind::Sync),
    ];
    let wanted = |op: OpName| ops.is_empty() || ops.contains(&op);
    all.into_iter()
        .filter(|(op, _)| wanted(*op))
        .map(|(_, kind)| kind)
        .collect()
}

fn groups(args: &RecordArgs) -> Vec<Group> {
    let all = [
        (OpName::Uring, Group::Uring),
        (OpName::Aio, Group::Aio),
        (OpName::Mmap, Group::Faults),
        (OpName::Block, Group::Block),
    ];
    let ops = &args.what.op;
    let wanted = |op: OpName| ops.contains(&op) || (ops.is_empty() && !args.mode.aggregate);
    let others = all.into_iter().filter(|(op, _)| wanted(*op));
    std::iter::once(Group::Calls)
        .chain(others.map(|(_, group)| group))
        .collect()
}
