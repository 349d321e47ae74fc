//! Reading hostile bytes front to back: bounded slices, little-endian fields and WiredTiger's
//! order-preserving variable-length integers (`src/include/intpack_inline.h`).

use thiserror::Error;

/// Why bytes could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{reason} at byte {at}")]
pub struct DecodeError {
    /// Position in the page image, cookie or list that was being read.
    pub at: usize,
    pub reason: &'static str,
}

/// A position in bytes that moves forward.
#[derive(Debug, Clone, Copy)]
pub struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ByteReader<'a> {
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns a reader that starts at byte `at`; beyond the end there is nothing to read.
    #[must_use]
    pub fn starting_at(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    #[must_use]
    pub fn position(&self) -> usize {
        self.at
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Makes an error at the present position.
    #[must_use]
    pub fn error(&self, reason: &'static str) -> DecodeError {
        DecodeError {
            at: self.at,
            reason,
        }
    }

    /// Reads one byte.
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        let byte = *self
            .bytes
            .get(self.at)
            .ok_or(self.error("the bytes end too early"))?;
        self.at += 1;
        Ok(byte)
    }

    /// Reads the next `length` bytes.
    pub fn take(&mut self, length: u64) -> Result<&'a [u8], DecodeError> {
        let taken = usize::try_from(length)
            .ok()
            .and_then(|length| self.at.checked_add(length))
            .and_then(|end| self.bytes.get(self.at..end))
            .ok_or(self.error("a length points beyond the end"))?;
        self.at += taken.len();
        Ok(taken)
    }

    /// Reads four bytes, little-endian.
    pub fn u32_le(&mut self) -> Result<u32, DecodeError> {
        Ok(self
            .take(4)?
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u32::from(byte)))
    }

    /// Reads eight bytes, little-endian.
    pub fn u64_le(&mut self) -> Result<u64, DecodeError> {
        Ok(self
            .take(8)?
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    /// Reads an unsigned variable-length integer.
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        let start = *self;
        let overflow = start.error("a number is larger than 64 bits");
        let first = self.byte()?;
        match first {
            0x80..=0xBF => Ok(u64::from(first & 0x3F)),
            0xC0..=0xDF => Ok((u64::from(first & 0x1F) << 8 | u64::from(self.byte()?)) + 64),
            0xE1..=0xE8 => {
                let bytes = self.take(u64::from(first & 0x0F))?;
                let value = bytes
                    .iter()
                    .fold(0, |value, &byte| value << 8 | u64::from(byte));
                value.checked_add(8256).ok_or(overflow)
            }
            _ => Err(start.error("no unsigned number starts with this byte")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_of_the_engine() {
        let vectors: [(u64, &[u8]); 8] = [
            (0, &[0x80]),
            (63, &[0xbf]),
            (64, &[0xc0, 0x00]),
            (8255, &[0xdf, 0xff]),
            (8256, &[0xe1, 0x00]),
            (8257, &[0xe1, 0x01]),
            (71002, &[0xe2, 0xf5, 0x1a]),
            (4_294_967_295, &[0xe4, 0xff, 0xff, 0xdf, 0xbf]),
        ];
        for (value, bytes) in vectors {
            assert_eq!(ByteReader::new(bytes).varint(), Ok(value));
        }
    }

    #[test]
    fn what_is_no_varint_is_refused() {
        for bytes in [
            &[0x7f][..],
            &[0xe0],
            &[0xe9, 0, 0],
            &[0xc0],
            &[0xe8, 0xff],
            &[],
            &[0xff; 9],
        ] {
            assert!(ByteReader::new(bytes).varint().is_err(), "{bytes:x?}");
        }
        let too_large = [0xe8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert!(ByteReader::new(&too_large).varint().is_err());
    }
}
