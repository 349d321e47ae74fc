//! What the kernel programs report besides I/O: threads and names of files. The layouts are `struct
//! thread_record` and `struct name_record` in `bpf/record.h`. Pure and total.

use crate::decode::{FileKey, RECORD_BYTES};

const THREAD_BYTES: usize = 32;
/// Offset of the name in a thread's record, and of the path's parts in a file's record.
const COMM_AT: usize = 16;
const PARTS_AT: usize = 64;

const NAME_TRUNCATED: u32 = 1;
const NAME_UNLINKED: u32 = 2;

/// A record that is not I/O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A thread is about to have its first event.
    Thread { tid: u32, pid: u32, name: String },
    /// A file was opened.
    Opened(OpenedFile),
}

/// A file that a process opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedFile {
    pub file: FileKey,
    /// Distinguishes a new file from an older one that had its inode number.
    pub generation: u32,
    /// The process's id in the first PID namespace.
    pub pid: u32,
    /// Absolute path as the process sees it; `None` where it is too deep or too long.
    pub path: Option<String>,
    /// The file no longer has a name, or never had one.
    pub unlinked: bool,
}

/// Decodes a record whose length is not that of an I/O record; `None` for one that no program
/// sends.
pub fn decode_notice(bytes: &[u8]) -> Option<Notice> {
    match bytes.len() {
        THREAD_BYTES => Some(Notice::Thread {
            tid: u32_at(bytes, 0)?,
            pid: u32_at(bytes, 4)?,
            name: text(bytes.get(COMM_AT..)?.split(|b| *b == 0).next()?),
        }),
        PARTS_AT.. if bytes.len() != RECORD_BYTES => opened(bytes).map(Notice::Opened),
        _ => None,
    }
}

fn opened(bytes: &[u8]) -> Option<OpenedFile> {
    let flags = u32_at(bytes, 20)?;
    let path = (flags & NAME_TRUNCATED == 0).then(|| path_of(&bytes[PARTS_AT..]));
    Some(OpenedFile {
        file: FileKey {
            inode: u64::from(u32_at(bytes, 0)?) | u64::from(u32_at(bytes, 4)?) << 32,
            device: u32_at(bytes, 8)?,
        },
        generation: u32_at(bytes, 12)?,
        pid: u32_at(bytes, 16)?,
        path,
        unlinked: flags & NAME_UNLINKED != 0,
    })
}

/// Joins the parts of a path, which come in order from last to first, each ended by a zero byte.
fn path_of(parts: &[u8]) -> String {
    let parts = parts.strip_suffix(&[0]).unwrap_or(parts);
    let mut path = String::new();
    for part in parts.split(|b| *b == 0).rev() {
        path.push('/');
        path.push_str(&text(part));
    }
    path
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name_record(flags: u32, parts: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; PARTS_AT];
        bytes[0..8].copy_from_slice(&((7u64 << 40) | 5).to_ne_bytes());
        bytes[8..12].copy_from_slice(&(254u32 << 20 | 1).to_ne_bytes());
        bytes[12..16].copy_from_slice(&99u32.to_ne_bytes());
        bytes[16..20].copy_from_slice(&42u32.to_ne_bytes());
        bytes[20..24].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(parts);
        bytes
    }

    #[test]
    fn a_path_is_put_together_from_its_end() {
        let Some(Notice::Opened(file)) = decode_notice(&name_record(0, b"a.wt\0db\0data\0")) else {
            panic!("not a name")
        };
        assert_eq!(file.path.as_deref(), Some("/data/db/a.wt"));
        assert_eq!((file.file.inode, file.file.major()), ((7 << 40) | 5, 254));
        assert_eq!((file.generation, file.pid, file.unlinked), (99, 42, false));
    }

    #[test]
    fn truncated_and_unlinked_files_say_so() {
        let Some(Notice::Opened(file)) = decode_notice(&name_record(3, b"x\0")) else {
            panic!("not a name")
        };
        assert_eq!((file.path, file.unlinked), (None, true));
    }

    #[test]
    fn a_thread_has_a_name() {
        let mut bytes = [0; THREAD_BYTES];
        bytes[0..4].copy_from_slice(&7u32.to_ne_bytes());
        bytes[4..8].copy_from_slice(&6u32.to_ne_bytes());
        bytes[16..22].copy_from_slice(b"conn12");
        assert_eq!(
            decode_notice(&bytes),
            Some(Notice::Thread {
                tid: 7,
                pid: 6,
                name: "conn12".into()
            })
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_notice(&bytes);
        }
    }
}
