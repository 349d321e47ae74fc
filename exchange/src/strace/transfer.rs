//! Reads, writes and syncs: which file, at which offset, how many bytes.

use std::cell::RefCell;
use std::rc::Rc;

use seekscope_run::{IoEvent, IoFlags, IoOp};

use super::calls::set;
use super::processes::{OpenFile, Processes, Slot};
use super::syntax::{Call, Descriptor, Returned, unescape};
use crate::import::{Import, LineResult, RecordSink, malformed};

/// Paths that are not files on a disk.
const IGNORED_FOLDERS: [&str; 2] = ["/proc/", "/sys/"];
const IGNORED_DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/pts/",
];

/// The offset of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The file's own position, which moves.
    Position,
    /// The offset in this argument; in the second kind of vectored calls, `-1` means the position.
    Argument(usize),
    /// No offset: the whole file.
    None,
}

/// The number of bytes requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Argument(usize),
    /// The number transferred: the vectors are not summed up.
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

/// Returns whether this is the name of such a call.
pub(super) fn is_one(name: &str) -> bool {
    TRANSFERS.iter().any(|(known, ..)| *known == name)
}

/// A read, write or sync that returned.
pub(super) struct Transfer<'a> {
    op: IoOp,
    place: Place,
    length: Length,
    call: &'a Call<'a>,
}

impl<'a> Transfer<'a> {
    /// Recognises a call; `None` if it is another kind.
    pub(super) fn of(call: &'a Call<'a>) -> Option<Self> {
        let found = TRANSFERS.iter().find(|(name, ..)| *name == call.name);
        found.map(|(_, op, place, length)| Self {
            op: *op,
            place: *place,
            length: *length,
            call,
        })
    }

    /// Records an event, if the call was on a file and returned.
    pub(super) fn take<S: RecordSink>(
        &self,
        import: &mut Import<'_, S>,
        processes: &mut Processes,
        tid: u32,
        t_ns: u64,
    ) -> LineResult<()> {
        let call = self.call;
        let Some(returned) = &call.result else {
            import.skip("a call that did not return, or was restarted");
            return Ok(());
        };
        let descriptor = call
            .descriptor(0)
            .ok_or_else(|| malformed("the first argument is not a descriptor"))?;
        let Some(slot) = slot_of(processes, tid, &descriptor)? else {
            import.skip(
                "a call on a socket, pipe or device, or on a descriptor whose file is not known",
            );
            return Ok(());
        };
        let mut file = slot.file.borrow_mut();
        let result = result(returned)?;
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
            // The position is now at the end of the file, which is not printed.
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
}

/// Returns the bytes, or the negative errno.
fn result(returned: &Returned<'_>) -> LineResult<i32> {
    if returned.value >= 0 {
        return i32::try_from(returned.value)
            .map_err(|_| malformed("no call transfers 2 GiB or more"));
    }
    Ok(-errno(returned.errno))
}

/// Returns the open file of a descriptor; `None` if it is not a file, or not known.
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

/// Like [`is_file`], but for paths from opens, which may be relative.
fn is_tracked(path: &str) -> bool {
    !path.is_empty() && (!path.starts_with('/') || is_file(path))
}

/// Returns the number of an error that file calls return (errno(3), Linux's numbers); others count
/// as EIO.
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
/// Returns a descriptor that was open before the trace began, known from -y.
pub(super) fn known_by_path(descriptor: &Descriptor<'_>) -> Slot {
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

/// Returns whether a path printed by -y names a file, not a socket, pipe or terminal.
pub(super) fn is_file(path: &str) -> bool {
    path.starts_with('/')
        && !path.contains("<char ")
        && !IGNORED_FOLDERS.iter().any(|f| path.starts_with(f))
        && !IGNORED_DEVICES.iter().any(|d| path.starts_with(d))
}
