//! Decodes the bytes of one kernel record into a call. The layout is `struct io_record` in
//! `bpf/record.h`. Pure and total: any bytes give a call or an error.

use seekscope_run::{BlockRequest, IoEvent, IoFlags, IoLayer, IoOp};

/// Size of one record, bytes.
pub const RECORD_BYTES: usize = 56;

/// The block layer's unit, bytes.
const SECTOR_BYTES: u32 = 512;

/// Offsets of fields that both layouts have in the same place.
const OP_AT: usize = 52;
const FLAGS_AT: usize = 53;

/// The bit of `facts` that says that a disk's request failed; it becomes the result.
const BLOCK_FAILED: u8 = 0x80;
/// The value that means no file offset, in sectors.
const OFFSET_SECTORS_UNKNOWN: u64 = (1 << 40) - 1;

/// The kernel's identity of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileKey {
    /// Device of the superblock, `major << 20 | minor`.
    pub device: u32,
    /// Inode number.
    pub inode: u64,
}

impl FileKey {
    /// Makes a key from the parts that `stat` gives.
    pub fn new(major: u32, minor: u32, inode: u64) -> Self {
        Self {
            device: major << 20 | minor & 0xf_ffff,
            inode,
        }
    }

    /// Returns the major device number; 0 for file systems without a device of their own.
    pub fn major(self) -> u32 {
        self.device >> 20
    }

    /// Returns the minor device number.
    pub fn minor(self) -> u32 {
        self.device & 0xf_ffff
    }
}

/// One completed call or request: an event without its process and file id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The file; with inode 0 the disk, for requests without a known file.
    pub file: FileKey,
    /// The thread that made it.
    pub tid: u32,
    t_ns: u64,
    op: IoOp,
    flags: IoFlags,
    offset: Option<u64>,
    length: u32,
    latency_ns: u64,
    result: i32,
    device_read_bytes: u32,
    request: Option<BlockRequest>,
}

impl Call {
    /// Returns the disk of a request, as a key without a file.
    pub fn disk(&self) -> Option<FileKey> {
        let request = self.request?;
        Some(FileKey::new(request.disk_major, request.disk_minor, 0))
    }

    /// Makes the event, given what the record does not hold.
    pub fn event(&self, pid: u32, file_id: u32) -> IoEvent {
        IoEvent {
            t_ns: self.t_ns,
            pid,
            tid: self.tid,
            file_id,
            op: self.op,
            flags: self.flags,
            offset: self.offset,
            length: self.length,
            latency_ns: self.latency_ns,
            result: self.result,
            device_read_bytes: self.device_read_bytes,
            request: self.request,
        }
    }
}

/// Why bytes are not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The length is not [`RECORD_BYTES`].
    #[error("a record has {found} bytes instead of {RECORD_BYTES}")]
    Length { found: usize },
    /// No [`IoOp`] has this number.
    #[error("unknown operation {code}")]
    Operation { code: u8 },
}

/// Decodes one record.
pub fn decode(bytes: &[u8]) -> Result<Call, DecodeError> {
    let record: &[u8; RECORD_BYTES] = bytes
        .try_into()
        .map_err(|_| DecodeError::Length { found: bytes.len() })?;
    let code = record[OP_AT];
    let op = IoOp::from_code(code).ok_or(DecodeError::Operation { code })?;
    if op.layer() == IoLayer::Device {
        return Ok(decode_request(record, op));
    }
    let offset = u64_at(record, 8);
    Ok(Call {
        t_ns: u64_at(record, 0),
        // File offsets are signed in the kernel: a value beyond i64 means unknown, or an argument
        // that the kernel refused.
        offset: i64::try_from(offset).is_ok().then_some(offset),
        latency_ns: u64_at(record, 24),
        length: u32_at(record, 32),
        tid: u32_at(record, 36),
        file: FileKey {
            device: u32_at(record, 40),
            inode: u64_at(record, 16),
        },
        result: u32_at(record, 44).cast_signed(),
        device_read_bytes: u32_at(record, 48),
        op,
        flags: IoFlags(u16::from(record[FLAGS_AT])),
        request: None,
    })
}

/// Decodes a `struct block_record`.
fn decode_request(record: &[u8; RECORD_BYTES], op: IoOp) -> Call {
    let disk = u32_at(record, 32);
    let file = match u64_at(record, 16) {
        0 => FileKey {
            device: disk,
            inode: 0,
        },
        inode => FileKey {
            device: u32_at(record, 40),
            inode,
        },
    };
    let offset_sectors = u64::from(u32_at(record, 44)) | u64::from(record[48]) << 32;
    let length = u32::from(u16::from_ne_bytes([record[50], record[51]])) * SECTOR_BYTES;
    let (facts, failed) = (record[49] & !BLOCK_FAILED, record[49] & BLOCK_FAILED != 0);
    Call {
        file,
        t_ns: u64_at(record, 0),
        tid: u32_at(record, 36),
        op,
        flags: IoFlags(u16::from(facts) << 8 | u16::from(record[FLAGS_AT])),
        offset: (offset_sectors != OFFSET_SECTORS_UNKNOWN)
            .then_some(offset_sectors * u64::from(SECTOR_BYTES)),
        length,
        latency_ns: u64_at(record, 24),
        result: if failed {
            -libc::EIO
        } else {
            length.cast_signed()
        },
        device_read_bytes: 0,
        request: Some(BlockRequest {
            disk_major: disk >> 20,
            disk_minor: disk & 0xf_ffff,
            sector: u64_at(record, 8),
        }),
    }
}

fn u64_at(record: &[u8; RECORD_BYTES], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&record[at..at + 8]);
    u64::from_ne_bytes(bytes)
}

fn u32_at(record: &[u8; RECORD_BYTES], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&record[at..at + 4]);
    u32::from_ne_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A record with a different value in every field.
    fn sample() -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0..8].copy_from_slice(&1_000_000_007u64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&(5u64 << 40).to_ne_bytes());
        bytes[16..24].copy_from_slice(&77u64.to_ne_bytes());
        bytes[24..32].copy_from_slice(&18_660_000_001u64.to_ne_bytes());
        bytes[32..36].copy_from_slice(&4096u32.to_ne_bytes());
        bytes[36..40].copy_from_slice(&4242u32.to_ne_bytes());
        bytes[40..44].copy_from_slice(&(254u32 << 20 | 3).to_ne_bytes());
        bytes[44..48].copy_from_slice(&(-5i32).to_ne_bytes());
        bytes[48..52].copy_from_slice(&(40u32 << 20).to_ne_bytes());
        bytes[OP_AT] = IoOp::Pread as u8;
        bytes[FLAGS_AT] = 3;
        bytes
    }

    #[test]
    fn every_field_lands_where_it_belongs() {
        let call = decode(&sample()).unwrap();
        assert_eq!(
            (call.file.major(), call.file.minor(), call.file.inode),
            (254, 3, 77)
        );
        assert_eq!(
            call.event(9, 2),
            IoEvent {
                t_ns: 1_000_000_007,
                pid: 9,
                tid: 4242,
                file_id: 2,
                op: IoOp::Pread,
                flags: IoFlags(IoFlags::WAITED | IoFlags::DEVICE_READ),
                offset: Some(5 << 40),
                length: 4096,
                latency_ns: 18_660_000_001,
                result: -5,
                device_read_bytes: 40 << 20,
                request: None,
            }
        );
    }

    #[test]
    fn a_request_of_a_disk_has_its_own_layout() {
        let mut bytes = sample();
        bytes[8..16].copy_from_slice(&123_456_789_012u64.to_ne_bytes());
        bytes[32..36].copy_from_slice(&(259u32 << 20 | 1).to_ne_bytes());
        bytes[44..48].copy_from_slice(&16u32.to_ne_bytes());
        bytes[48] = 2;
        bytes[49] = 0x02 | BLOCK_FAILED;
        bytes[50..52].copy_from_slice(&8u16.to_ne_bytes());
        bytes[OP_AT] = IoOp::BlockWrite as u8;
        bytes[FLAGS_AT] = 0x40;
        let call = decode(&bytes).unwrap();
        assert_eq!(call.file, FileKey::new(254, 3, 77));
        let event = call.event(9, 2);
        assert_eq!(
            (event.pid, event.offset, event.length, event.result),
            (9, Some(2 << 41 | 16 << 9), 4096, -5)
        );
        assert_eq!(
            event.flags,
            IoFlags(IoFlags::METADATA | IoFlags::DEVICE_BYTES_SATURATED)
        );
        assert_eq!(event.latency_ns, 18_660_000_001);
        let request = BlockRequest {
            disk_major: 259,
            disk_minor: 1,
            sector: 123_456_789_012,
        };
        assert_eq!(event.request, Some(request));

        bytes[16..24].fill(0);
        bytes[44..49].fill(0xff);
        bytes[49] = 0;
        let call = decode(&bytes).unwrap();
        assert_eq!(call.file, FileKey::new(259, 1, 0));
        let event = call.event(9, 2);
        assert_eq!((event.offset, event.result), (None, 4096));
    }

    #[test]
    fn an_offset_that_no_file_can_have_is_unknown() {
        for offset in [u64::MAX, 1 << 63] {
            let mut bytes = sample();
            bytes[8..16].copy_from_slice(&offset.to_ne_bytes());
            assert_eq!(decode(&bytes).unwrap().event(0, 0).offset, None);
        }
    }

    #[test]
    fn wrong_sizes_and_operations_are_refused() {
        assert_eq!(decode(&[]), Err(DecodeError::Length { found: 0 }));
        assert_eq!(decode(&[0; 57]), Err(DecodeError::Length { found: 57 }));
        assert_eq!(decode(&[0; 56]), Err(DecodeError::Operation { code: 0 }));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn any_full_record_with_a_known_operation_decodes(
            mut bytes in proptest::collection::vec(any::<u8>(), RECORD_BYTES), code in 1u8..=25,
        ) {
            bytes[OP_AT] = code;
            let event = decode(&bytes).unwrap().event(1, 2);
            prop_assert_eq!(event.op as u8, code);
            prop_assert!(event.offset.is_none_or(|o| o <= i64::MAX as u64));
        }

        #[test]
        fn device_numbers_survive(major in 0u32..4096, minor in 0u32..(1 << 20), inode: u64) {
            let key = FileKey::new(major, minor, inode);
            prop_assert_eq!((key.major(), key.minor(), key.inode), (major, minor, inode));
        }
    }
}
