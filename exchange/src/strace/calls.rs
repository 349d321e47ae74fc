//! What each system call means: which file, where in it, how much.

use std::cell::RefCell;
use std::rc::Rc;

use seekscope_run::{IoEvent, IoFlags, IoOp};

use super::processes::{FORKS, OpenFile, Processes, Sharing, Slot};
use super::syntax::{Call, Descriptor, Returned, unescape};
use crate::import::{Import, LineError, LineResult, RecordSink, malformed};

/// What is no file on a disk.
const IGNORED_FOLDERS: [&str; 2] = ["/proc/", "/sys/"];
const IGNORED_DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/pts/",
];

/// Where a transfer takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the file's own position, which moves.
    Position,
    /// At the offset in this argument; `-1` of the second kind of vectored calls is the position.
    Argument(usize),
    /// Nowhere: the whole file.
    None,
}

/// How many bytes are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Argument(usize),
    /// As many as were transferred: the vectors are not summed up.
    Transferred,
    Zero,
}

/// Name, operation, place, length.
const TRANSFERS: [(&str, IoOp, Place, Length); 13] = {
    use Length::{Argument, Transferred, Zero};
    use Place::Position;
    [
        ("read", IoOp::Read, Position, Argument(2)),
        ("write", IoOp::Write, Position, Argument(2)),
        ("pread64", IoOp::Pread, Place::Argument(3), Argument(2)),
        ("pwrite64", IoOp::Pwrite, Place::Argument(3), Argument(2)),
        ("readv", IoOp::Readv, Position, Transferred),
        ("writev", IoOp::Writev, Position, Transferred),
        ("preadv", IoOp::Preadv, Place::Argument(3), Transferred),
        ("pwritev", IoOp::Pwritev, Place::Argument(3), Transferred),
        ("preadv2", IoOp::Preadv2, Place::Argument(3), Transferred),
        ("pwritev2", IoOp::Pwritev2, Place::Argument(3), Transferred),
        ("fsync", IoOp::Fsync, Place::None, Zero),
        ("fdatasync", IoOp::Fdatasync, Place::None, Zero),
        (
            "sync_file_range",
            IoOp::SyncFileRange,
            Place::Argument(1),
            Argument(2),
        ),
    ]
};

const OPENS: [&str; 4] = ["open", "openat", "openat2", "creat"];
const COPIES: [&str; 4] = ["dup", "dup2", "dup3", "fcntl"];
/// Calls that move positions in ways that are not followed.
const MOVERS: [&str; 3] = ["sendfile", "copy_file_range", "splice"];

/// Is this a call that the rest of the trace depends on?
pub(super) fn matters(name: &str) -> bool {
    TRANSFERS.iter().any(|(known, ..)| *known == name)
        || [&OPENS[..], &COPIES[..], &["close", "lseek"]]
            .iter()
            .any(|names| names.contains(&name))
}

/// Takes a call in: an event, a change of descriptors, or nothing.
pub(super) fn take<S: RecordSink>(
    import: &mut Import<'_, S>,
    processes: &mut Processes,
    tid: u32,
    t_ns: u64,
    call: &Call<'_>,
) -> LineResult<()> {
    if let Some((_, op, place, length)) = TRANSFERS.iter().find(|(name, ..)| *name == call.name) {
        let Some(returned) = &call.result else {
            import.skip("a call that did not return, or is made again");
            return Ok(());
        };
        let transfer = Transfer {
            op: *op,
            place: *place,
            length: *length,
            returned,
        };
        return transfer.take(import, processes, tid, t_ns, call);
    }
    if let Some(returned) = call.result.as_ref().filter(|r| r.value >= 0) {
        follow(processes, tid, call, returned)?;
    }
    import.skip(if matters(call.name) {
        "an open, close, seek or copy of a descriptor"
    } else {
        "a call that does not touch files"
    });
    Ok(())
}

/// Keeps up with what descriptors stand for after a call that succeeded.
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
                && is_file(descriptor.path)
            {
                let slot = known_by_path(&descriptor);
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

fn set(processes: &mut Processes, tid: u32, descriptor: i64, slot: Slot) -> LineResult<()> {
    if processes.set(tid, descriptor, slot) {
        Ok(())
    } else {
        Err(LineError::TooManyNames)
    }
}

/// What an open that succeeded gives.
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

/// A descriptor that was open before the trace began, known from -y.
fn known_by_path(descriptor: &Descriptor<'_>) -> Slot {
    Slot {
        file: Rc::new(RefCell::new(OpenFile {
            path: unescape(descriptor.path),
            position: None,
            append: false,
            direct: false,
        })),
        close_on_exec: false,
    }
}

/// Does a path of -y name a file, and not a socket, pipe or terminal?
fn is_file(path: &str) -> bool {
    path.starts_with('/')
        && !path.contains("<char ")
        && !IGNORED_FOLDERS.iter().any(|f| path.starts_with(f))
        && !IGNORED_DEVICES.iter().any(|d| path.starts_with(d))
}

/// A read, write or sync that returned.
struct Transfer<'a> {
    op: IoOp,
    place: Place,
    length: Length,
    returned: &'a Returned<'a>,
}

impl Transfer<'_> {
    fn take<S: RecordSink>(
        &self,
        import: &mut Import<'_, S>,
        processes: &mut Processes,
        tid: u32,
        t_ns: u64,
        call: &Call<'_>,
    ) -> LineResult<()> {
        let descriptor = call
            .descriptor(0)
            .ok_or_else(|| malformed("the first argument is no descriptor"))?;
        let Some(slot) = slot_of(processes, tid, &descriptor)? else {
            import
                .skip("a call on a socket, pipe, device, or a descriptor whose file is not known");
            return Ok(());
        };
        let mut file = slot.file.borrow_mut();
        let result = self.result()?;
        let transferred = u32::try_from(result).unwrap_or(0);
        let length = match self.length {
            Length::Argument(i) => {
                let asked = call.number(i).map_err(malformed)?;
                u32::try_from(asked.max(0)).unwrap_or(u32::MAX)
            }
            Length::Transferred => transferred,
            Length::Zero => 0,
        };
        let argument = match self.place {
            Place::Argument(i) => Some(call.number(i).map_err(malformed)?),
            Place::Position | Place::None => None,
        };
        let mut flags = IoFlags::CACHE_UNKNOWN;
        let at_position = self.place == Place::Position || argument == Some(-1);
        let offset = if !at_position {
            argument.and_then(|offset| u64::try_from(offset).ok())
        } else if file.append && self.op.is_write() {
            // The end of the file, which is not printed, and where the position then stands.
            file.position = None;
            None
        } else {
            flags |= IoFlags::OFFSET_FROM_POSITION;
            let at = file.position;
            file.position = at.map(|p| p.saturating_add(u64::from(transferred)));
            at
        };
        flags |= if file.append { IoFlags::APPEND } else { 0 };
        flags |= if file.direct { IoFlags::DIRECT } else { 0 };
        let file_id = import.file_id(&file.path)?;
        let pid = processes.pid(tid);
        import.thread(tid, pid, "")?;
        import.event(&IoEvent {
            t_ns,
            pid,
            tid,
            file_id,
            op: self.op,
            flags: IoFlags(flags),
            offset,
            length,
            latency_ns: call.latency_ns.unwrap_or(0),
            result,
            device_read_bytes: 0,
            request: None,
        })
    }

    fn result(&self) -> LineResult<i32> {
        if self.returned.value >= 0 {
            return i32::try_from(self.returned.value)
                .map_err(|_| malformed("no call transfers 2 GiB or more"));
        }
        Ok(-errno(self.returned.errno))
    }
}

/// The open file of a descriptor; `None` when it is no file, or not known.
fn slot_of(
    processes: &mut Processes,
    tid: u32,
    descriptor: &Descriptor<'_>,
) -> LineResult<Option<Slot>> {
    let known = processes.slot(tid, descriptor.number);
    if descriptor.path.is_empty() {
        return Ok(known.filter(|slot| is_tracked(&slot.file.borrow().path)));
    }
    if !is_file(descriptor.path) {
        return Ok(None);
    }
    let path = unescape(descriptor.path);
    match known {
        Some(slot) if slot.file.borrow().path == path => Ok(Some(slot)),
        _ => {
            // Opened before the trace, or by a call that was not seen.
            let slot = known_by_path(descriptor);
            set(processes, tid, descriptor.number, slot.clone())?;
            Ok(Some(slot))
        }
    }
}

/// Like [`is_file`], for paths from opens: those may be relative.
fn is_tracked(path: &str) -> bool {
    !path.is_empty() && (!path.starts_with('/') || is_file(path))
}

/// Numbers of the errors that file calls return (errno(3), Linux's numbers); others count as EIO.
fn errno(name: &str) -> i32 {
    const ERRORS: [(&str, i32); 19] = [
        ("EPERM", 1),
        ("EINTR", 4),
        ("EIO", 5),
        ("ENXIO", 6),
        ("EBADF", 9),
        ("EAGAIN", 11),
        ("ENOMEM", 12),
        ("EFAULT", 14),
        ("EBUSY", 16),
        ("EISDIR", 21),
        ("EINVAL", 22),
        ("EFBIG", 27),
        ("ENOSPC", 28),
        ("ESPIPE", 29),
        ("EROFS", 30),
        ("EPIPE", 32),
        ("EOVERFLOW", 75),
        ("EOPNOTSUPP", 95),
        ("EDQUOT", 122),
    ];
    let known = ERRORS.iter().find(|(known, _)| *known == name);
    known.map_or(5, |(_, number)| *number)
}
