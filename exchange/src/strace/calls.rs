//! The meaning of each system call: an event, or a change of what descriptors refer to.

use std::cell::RefCell;
use std::rc::Rc;

use super::processes::{FORKS, OpenFile, Processes, Sharing, Slot};
use super::syntax::{Call, Returned, unescape};
use super::transfer::{self, Transfer};
use crate::import::{Import, LineError, LineResult, RecordSink};

const OPENS: [&str; 4] = ["open", "openat", "openat2", "creat"];
const COPIES: [&str; 4] = ["dup", "dup2", "dup3", "fcntl"];
/// Calls that move file positions in ways that are not tracked.
const MOVERS: [&str; 3] = ["sendfile", "copy_file_range", "splice"];

/// Returns whether the rest of the trace depends on this call.
pub(super) fn matters(name: &str) -> bool {
    transfer::is_one(name)
        || [&OPENS[..], &COPIES[..], &["close", "lseek"]]
            .iter()
            .any(|names| names.contains(&name))
}

/// Handles a call: records an event, changes descriptors, or does nothing.
pub(super) fn take<S: RecordSink>(
    import: &mut Import<'_, S>,
    processes: &mut Processes,
    tid: u32,
    t_ns: u64,
    call: &Call<'_>,
) -> LineResult<()> {
    if let Some(transfer) = Transfer::of(call) {
        return transfer.take(import, processes, tid, t_ns);
    }
    if let Some(returned) = call.result.as_ref().filter(|r| r.value >= 0) {
        follow(processes, tid, call, returned)?;
    }
    import.skip(if matters(call.name) {
        "a call that opens, closes, copies or seeks in a descriptor"
    } else {
        "a call that does not touch files"
    });
    Ok(())
}

/// Updates what descriptors refer to after a call that succeeded.
fn follow(
    processes: &mut Processes,
    tid: u32,
    call: &Call<'_>,
    returned: &Returned<'_>,
) -> LineResult<()> {
    let first = call.descriptor(0).map(|d| d.number);
    match call.name {
        name if OPENS.contains(&name) => {
            return set(processes, tid, returned.value, opened(call, returned));
        }
        "close" => {
            if let Some(descriptor) = first {
                processes.close(tid, descriptor);
            }
        }
        "fcntl" if !call.argument(1).starts_with("F_DUPFD") => {}
        name if COPIES.contains(&name) => {
            let Some(mut slot) = first.and_then(|d| processes.slot(tid, d)) else {
                processes.close(tid, returned.value);
                return Ok(());
            };
            slot.close_on_exec = call.arguments.iter().any(|a| a.contains("CLOEXEC"));
            return set(processes, tid, returned.value, slot);
        }
        "lseek" => {
            if let Some(slot) = first.and_then(|d| processes.slot(tid, d)) {
                slot.file.borrow_mut().position = Some(returned.value.unsigned_abs());
            } else if let Some(descriptor) = call.descriptor(0)
                && transfer::is_file(descriptor.path)
            {
                let slot = transfer::known_by_path(&descriptor);
                slot.file.borrow_mut().position = Some(returned.value.unsigned_abs());
                return set(processes, tid, descriptor.number, slot);
            }
        }
        name if MOVERS.contains(&name) => {
            for argument in 0..call.arguments.len() {
                if let Some(descriptor) = call.descriptor(argument)
                    && let Some(slot) = processes.slot(tid, descriptor.number)
                {
                    slot.file.borrow_mut().position = None;
                }
            }
        }
        "execve" | "execveat" => processes.executed(tid),
        name if FORKS.contains(&name) => {
            let sharing = Sharing::of(&call.arguments.join("|"));
            if let Ok(child @ 1..) = u32::try_from(returned.value) {
                processes.forked(tid, child, sharing);
            }
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn set(
    processes: &mut Processes,
    tid: u32,
    descriptor: i64,
    slot: Slot,
) -> LineResult<()> {
    if processes.set(tid, descriptor, slot) {
        Ok(())
    } else {
        Err(LineError::TooManyNames)
    }
}

/// Returns the descriptor's state after an open that succeeded.
fn opened(call: &Call<'_>, returned: &Returned<'_>) -> Slot {
    let path_argument = usize::from(call.name.starts_with("openat"));
    let flags = call.argument(path_argument + 1);
    let path = if returned.path.is_empty() {
        let path = call.text(path_argument).unwrap_or_default();
        let folder = call.folder(0);
        if path_argument == 1 && !path.starts_with('/') && !folder.is_empty() {
            format!("{}/{path}", unescape(folder))
        } else {
            path
        }
    } else {
        unescape(returned.path)
    };
    Slot {
        file: Rc::new(RefCell::new(OpenFile {
            path,
            position: Some(0),
            append: flags.contains("O_APPEND"),
            direct: flags
                .split(['|', '=', ',', ' ', '{', '}'])
                .any(|flag| flag == "O_DIRECT"),
        })),
        close_on_exec: flags.contains("O_CLOEXEC"),
    }
}
