//! Cells of row-store pages (`src/include/cell.h`, `src/include/cell_inline.h`).

use crate::bytes::{ByteReader, DecodeError};

/// A longer key or value is longer than what a short cell can say by at least this.
const LENGTH_BIAS: u64 = 64;
const SECOND_DESCRIPTOR: u8 = 0x08;
const VALUE_64: u8 = 0x04;
/// Bits of the second descriptor for the numbers that follow it.
const WINDOW_NUMBERS: u8 = 0x7E;
/// Bits of the second descriptor for a stop time or transaction, which means that the value is
/// deleted.
const WINDOW_STOP: u8 = 0x50;

/// One cell, as far as it is understood without the rest of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell<'a> {
    /// The key is the first `prefix` bytes of the previous one followed by `suffix`.
    Key {
        prefix: u8,
        suffix: &'a [u8],
    },
    /// The cookie of the page that holds the key.
    OverflowKey {
        cookie: &'a [u8],
    },
    Address {
        kind: AddressKind,
        cookie: &'a [u8],
    },
    Value {
        bytes: &'a [u8],
        deleted: bool,
    },
    /// The same value as the cell `back` bytes before this one.
    CopiedValue {
        back: u64,
        deleted: bool,
    },
    OverflowValue {
        cookie: &'a [u8],
        deleted: bool,
    },
}

/// What an address cell points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressKind {
    Internal,
    Leaf,
    LeafWithoutOverflow,
    /// A leaf of which every row is deleted, as the aggregated time window says.
    EmptiedLeaf,
    DeletedLeaf,
}

impl<'a> Cell<'a> {
    /// Reads the next cell. `fast_truncate`: the page says that cells of deleted leaves carry who
    /// deleted them.
    pub(crate) fn read(
        reader: &mut ByteReader<'a>,
        fast_truncate: bool,
    ) -> Result<Cell<'a>, DecodeError> {
        let start = *reader;
        let descriptor = reader.byte()?;
        let short_length = u64::from(descriptor >> 2);
        match descriptor & 0x03 {
            0x01 => {
                return Ok(Cell::Key {
                    prefix: 0,
                    suffix: reader.take(short_length)?,
                });
            }
            0x02 => {
                let prefix = reader.byte()?;
                return Ok(Cell::Key {
                    prefix,
                    suffix: reader.take(short_length)?,
                });
            }
            0x03 => {
                let bytes = reader.take(short_length)?;
                return Ok(Cell::Value {
                    bytes,
                    deleted: false,
                });
            }
            _ => {}
        }
        match descriptor >> 4 {
            kind @ 0..=3 => address(reader, descriptor, address_kind(kind), fast_truncate),
            5 => Ok(Cell::Key {
                prefix: 0,
                suffix: biased(reader)?,
            }),
            6 | 12 => Ok(Cell::OverflowKey {
                cookie: counted(reader)?,
            }),
            7 => {
                let prefix = reader.byte()?;
                Ok(Cell::Key {
                    prefix,
                    suffix: biased(reader)?,
                })
            }
            kind @ 8..=11 => value(reader, descriptor, kind),
            _ => Err(start.error("a cell has an unknown type")),
        }
    }
}

/// Returns the kind for one of the low four types.
fn address_kind(kind: u8) -> AddressKind {
    match kind {
        1 => AddressKind::Internal,
        2 => AddressKind::Leaf,
        3 => AddressKind::LeafWithoutOverflow,
        _ => AddressKind::DeletedLeaf,
    }
}

fn counted<'a>(reader: &mut ByteReader<'a>) -> Result<&'a [u8], DecodeError> {
    let length = reader.varint()?;
    reader.take(length)
}

fn biased<'a>(reader: &mut ByteReader<'a>) -> Result<&'a [u8], DecodeError> {
    let length = reader.varint()?;
    reader.take(length.saturating_add(LENGTH_BIAS))
}

/// Skips the time window, if there is one. Returns true if it says that the item is deleted.
fn window(reader: &mut ByteReader<'_>, descriptor: u8) -> Result<bool, DecodeError> {
    if descriptor & SECOND_DESCRIPTOR == 0 {
        return Ok(false);
    }
    let flags = reader.byte()?;
    if flags & !(WINDOW_NUMBERS | 0x01) != 0 {
        return Err(reader.error("a cell's time window has unknown flags"));
    }
    for _ in 0..(flags & WINDOW_NUMBERS).count_ones() {
        reader.varint()?;
    }
    Ok(flags & WINDOW_STOP != 0)
}

fn address<'a>(
    reader: &mut ByteReader<'a>,
    descriptor: u8,
    kind: AddressKind,
    fast_truncate: bool,
) -> Result<Cell<'a>, DecodeError> {
    let all_deleted = window(reader, descriptor)?;
    if kind == AddressKind::DeletedLeaf && fast_truncate {
        // Transaction, timestamp, durable timestamp.
        for _ in 0..3 {
            reader.varint()?;
        }
    }
    if descriptor & VALUE_64 != 0 {
        reader.varint()?;
    }
    let is_leaf = matches!(kind, AddressKind::Leaf | AddressKind::LeafWithoutOverflow);
    Ok(Cell::Address {
        kind: if is_leaf && all_deleted {
            AddressKind::EmptiedLeaf
        } else {
            kind
        },
        cookie: counted(reader)?,
    })
}

fn value<'a>(
    reader: &mut ByteReader<'a>,
    descriptor: u8,
    kind: u8,
) -> Result<Cell<'a>, DecodeError> {
    let deleted = window(reader, descriptor)?;
    if descriptor & VALUE_64 != 0 {
        reader.varint()?;
    }
    match kind {
        8 if descriptor & (SECOND_DESCRIPTOR | VALUE_64) == 0 => Ok(Cell::Value {
            bytes: biased(reader)?,
            deleted,
        }),
        8 => Ok(Cell::Value {
            bytes: counted(reader)?,
            deleted,
        }),
        9 => Ok(Cell::CopiedValue {
            back: reader.varint()?,
            deleted,
        }),
        _ => Ok(Cell::OverflowValue {
            cookie: counted(reader)?,
            deleted,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::BlockAddress;

    fn bytes(hex: &str) -> Vec<u8> {
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(byte).collect()
    }

    #[test]
    fn address_cells_of_the_engine() {
        use AddressKind::{DeletedLeaf, LeafWithoutOverflow};
        let vectors = [
            (
                "3088c00884e4c6cce25e",
                false,
                LeafWithoutOverflow,
                299_008,
                16_384,
            ),
            (
                "3822e301b065e301b06389e224e387e4e0ccb449",
                false,
                LeafWithoutOverflow,
                72_499_200,
                28_672,
            ),
            (
                "380088c04790e4b87039f2",
                false,
                LeafWithoutOverflow,
                557_056,
                65_536,
            ),
            (
                "080ae22e76b782e30473a1e30473a188ca6388e413b5fac7",
                true,
                DeletedLeaf,
                11_157_504,
                32_768,
            ),
        ];
        for (hex, fast_truncate, wanted, offset, length) in vectors {
            let cell = bytes(hex);
            let mut reader = ByteReader::new(&cell);
            let found = Cell::read(&mut reader, fast_truncate).unwrap();
            assert!(reader.is_empty());
            let Cell::Address { kind, cookie } = found else {
                panic!("{found:?}")
            };
            let address = BlockAddress::from_cookie(cookie, 4096).unwrap().unwrap();
            assert_eq!(
                (kind, address.offset, address.length),
                (wanted, offset, length),
                "{hex}"
            );
        }
    }

    #[test]
    fn leaves_of_which_every_row_is_deleted_are_told() {
        use AddressKind::{DeletedLeaf, EmptiedLeaf, Internal, LeafWithoutOverflow};
        // A start time, then a stop time, then the cookie of no bytes.
        for (descriptor, flags, wanted) in [
            (0x38, 0x08, LeafWithoutOverflow),
            (0x38, 0x18, EmptiedLeaf),
            (0x28, 0x18, EmptiedLeaf),
            (0x18, 0x18, Internal),
            (0x08, 0x18, DeletedLeaf),
        ] {
            let numbers = [0x85, 0x82];
            let numbers = &numbers[..if flags == 0x18 { 2 } else { 1 }];
            let cell = [&[descriptor, flags], numbers, &[0x80]].concat();
            let found = Cell::read(&mut ByteReader::new(&cell), false);
            let cookie = &[][..];
            let wanted = Cell::Address {
                kind: wanted,
                cookie,
            };
            assert_eq!(found, Ok(wanted), "{cell:x?}");
        }
    }

    #[test]
    fn lengths_count_from_64_for_keys_and_plain_values_only() {
        let long = [&[0x50, 0x80][..], &[7; 64]].concat();
        let key = Cell::read(&mut ByteReader::new(&long), false);
        assert_eq!(
            key,
            Ok(Cell::Key {
                prefix: 0,
                suffix: &[7; 64]
            })
        );
        let plain = [&[0x80, 0x80][..], &[7; 64]].concat();
        let value = Cell::read(&mut ByteReader::new(&plain), false);
        assert_eq!(
            value,
            Ok(Cell::Value {
                bytes: &[7; 64],
                deleted: false
            })
        );
        // A start time; then a stop time, so it is deleted.
        let timed = Cell::read(&mut ByteReader::new(&[0x88, 0x08, 0x85, 0x81, 7]), false);
        assert_eq!(
            timed,
            Ok(Cell::Value {
                bytes: &[7],
                deleted: false
            })
        );
        let ended = Cell::read(
            &mut ByteReader::new(&[0x88, 0x18, 0x85, 0x82, 0x81, 7]),
            false,
        );
        assert_eq!(
            ended,
            Ok(Cell::Value {
                bytes: &[7],
                deleted: true
            })
        );
    }

    #[test]
    fn what_is_no_cell_is_refused() {
        for cell in [
            &[0x40, 0x80][..],
            &[0xD0, 0x80],
            &[0x38, 0x80, 0x80],
            &[0x50, 0xE8],
            &[0x05],
        ] {
            assert!(
                Cell::read(&mut ByteReader::new(cell), false).is_err(),
                "{cell:x?}"
            );
        }
    }
}
