//! The contents of tree pages: the children of an internal page, the rows of a leaf page.

use crate::block::{BlockError, CheckedBlock, HEADER_BYTES, PAGE_FAST_TRUNCATE};
use crate::bytes::{ByteReader, DecodeError};
use crate::cells::{AddressKind, Cell};
use crate::tree::BlockAddress;

/// A child of an internal page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Child {
    pub(crate) address: BlockAddress,
    pub(crate) kind: AddressKind,
}

/// A key or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Bytes(Vec<u8>),
    /// An item on a page of its own.
    Overflow(BlockAddress),
}

/// A row that is not deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: Item,
    pub(crate) value: Item,
}

impl Row {
    /// Returns whether no part of it is still on an overflow page.
    pub(crate) fn is_whole(&self) -> bool {
        let is_read = |item: &Item| matches!(item, Item::Bytes(_));
        is_read(&self.key) && is_read(&self.value)
    }

    /// Returns key and value; `None` while part of it is still on an overflow page.
    pub(crate) fn into_bytes(self) -> Option<(Vec<u8>, Vec<u8>)> {
        match (self.key, self.value) {
            (Item::Bytes(key), Item::Bytes(value)) => Some((key, value)),
            _ => None,
        }
    }
}

/// The bytes that rows may still take. Prefixes and copied values let a small page expand to
/// gigabytes, so what is unpacked has to be counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowBudget(u64);

impl RowBudget {
    pub(crate) const BYTES: u64 = 192 << 20;
    /// Cost of a row besides its bytes.
    const ROW_BYTES: u64 = 96;

    pub(crate) fn new() -> Self {
        Self(Self::BYTES)
    }

    /// Spends `bytes`; `None` if less is left.
    pub(crate) fn spend(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.checked_sub(bytes)?;
        Some(())
    }
}

/// Calls `each` with the children in key order. Keys alternate with addresses, and the page
/// contains nothing else.
pub(crate) fn for_each_child(
    block: &CheckedBlock<'_>,
    image: &[u8],
    allocation_bytes: u32,
    mut each: impl FnMut(Child) -> Result<(), BlockError>,
) -> Result<(), BlockError> {
    let mut reader = ByteReader::starting_at(image, HEADER_BYTES);
    let fast_truncate = block.header.page_flags & PAGE_FAST_TRUNCATE != 0;
    let mut cells = 0_u32;
    while !reader.is_empty() {
        let child = child(&mut reader, fast_truncate, allocation_bytes);
        each(child.map_err(|fault| block.error(fault))?)?;
        cells += 2;
    }
    if cells == 0 || cells != block.header.entries {
        return Err(
            block.error(reader.error("the page does not have as many cells as its header says"))
        );
    }
    Ok(())
}

fn child(
    reader: &mut ByteReader<'_>,
    fast_truncate: bool,
    allocation_bytes: u32,
) -> Result<Child, DecodeError> {
    let start = *reader;
    let (Cell::Key { prefix: 0, .. } | Cell::OverflowKey { .. }) =
        Cell::read(reader, fast_truncate)?
    else {
        return Err(start.error("a cell of an internal page is not a key"));
    };
    let start = *reader;
    let Cell::Address { kind, cookie } = Cell::read(reader, fast_truncate)? else {
        return Err(start.error("a cell of an internal page is not an address"));
    };
    let address = pointed_at(&start, cookie, allocation_bytes)?;
    Ok(Child { address, kind })
}

/// Returns the block that a cell's cookie names; it must name one.
fn pointed_at(
    cell: &ByteReader<'_>,
    cookie: &[u8],
    allocation_bytes: u32,
) -> Result<BlockAddress, DecodeError> {
    let address = BlockAddress::from_cookie(cookie, allocation_bytes);
    let address = address.map_err(|error| cell.error(error.reason))?;
    address.ok_or(cell.error("an address is empty"))
}

/// Returns the rows of a leaf page in key order, without the deleted ones.
pub(crate) fn rows(
    block: &CheckedBlock<'_>,
    image: &[u8],
    allocation_bytes: u32,
    budget: &mut RowBudget,
) -> Result<Vec<Row>, DecodeError> {
    let mut page = LeafPage {
        image,
        allocation_bytes,
        budget,
        rows: Vec::new(),
        last_key: Vec::new(),
        key: None,
    };
    let mut reader = ByteReader::starting_at(image, HEADER_BYTES);
    let mut cells = 0_u32;
    while !reader.is_empty() {
        page.cell(&mut reader)?;
        cells += 1;
    }
    page.end_row(Some(Item::Bytes(Vec::new())), &reader)?;
    if cells != block.header.entries {
        return Err(reader.error("the page does not have as many cells as its header says"));
    }
    Ok(page.rows)
}

/// Returns the contents of an overflow page: as many bytes as its header's `entries` says.
pub(crate) fn overflow_bytes(
    block: &CheckedBlock<'_>,
    image: &[u8],
    budget: &mut RowBudget,
) -> Result<Vec<u8>, DecodeError> {
    let mut reader = ByteReader::starting_at(image, HEADER_BYTES);
    let bytes = reader.take(u64::from(block.header.entries))?;
    budget
        .spend(bytes.len() as u64)
        .ok_or(reader.error(OVER_BUDGET))?;
    Ok(bytes.to_vec())
}

const OVER_BUDGET: &str = "the rows of the table take more memory than allowed";

struct LeafPage<'a, 'b> {
    image: &'a [u8],
    allocation_bytes: u32,
    budget: &'b mut RowBudget,
    rows: Vec<Row>,
    /// The last key on the page itself, to which prefixes refer.
    last_key: Vec<u8>,
    /// A key whose value has not been read yet.
    key: Option<Item>,
}

impl<'a> LeafPage<'a, '_> {
    fn cell(&mut self, reader: &mut ByteReader<'a>) -> Result<(), DecodeError> {
        let start = *reader;
        let cell = Cell::read(reader, false)?;
        match cell {
            Cell::Key { .. } | Cell::OverflowKey { .. } => {
                // Two keys in a row: the first one's value is empty.
                self.end_row(Some(Item::Bytes(Vec::new())), &start)?;
                self.key = Some(self.key_of(cell, &start)?);
                Ok(())
            }
            _ if self.key.is_none() => Err(start.error("a value has no key")),
            _ => {
                let value = self.value_of(cell, &start)?;
                self.end_row(value, &start)
            }
        }
    }

    fn key_of(&mut self, cell: Cell<'a>, start: &ByteReader<'a>) -> Result<Item, DecodeError> {
        match cell {
            Cell::Key { prefix, suffix } => {
                if usize::from(prefix) > self.last_key.len() {
                    return Err(start.error("a key shares more bytes than the previous key has"));
                }
                self.last_key.truncate(usize::from(prefix));
                self.last_key.extend(suffix);
                self.spend(self.last_key.len(), start)?;
                Ok(Item::Bytes(self.last_key.clone()))
            }
            Cell::OverflowKey { cookie } => {
                pointed_at(start, cookie, self.allocation_bytes).map(Item::Overflow)
            }
            _ => Err(start.error("a key was expected")),
        }
    }

    /// Returns the value; `None` if it is deleted.
    fn value_of(
        &mut self,
        cell: Cell<'a>,
        start: &ByteReader<'a>,
    ) -> Result<Option<Item>, DecodeError> {
        match cell {
            Cell::Value { deleted: true, .. }
            | Cell::CopiedValue { deleted: true, .. }
            | Cell::OverflowValue { deleted: true, .. } => Ok(None),
            Cell::Value { bytes, .. } => {
                self.spend(bytes.len(), start)?;
                Ok(Some(Item::Bytes(bytes.to_vec())))
            }
            Cell::CopiedValue { back, .. } => self.copied_value(back, start).map(Some),
            Cell::OverflowValue { cookie, .. } => {
                pointed_at(start, cookie, self.allocation_bytes).map(|it| Some(Item::Overflow(it)))
            }
            _ => Err(start.error("a cell of a leaf page is neither a key nor a value")),
        }
    }

    fn copied_value(&mut self, back: u64, start: &ByteReader<'a>) -> Result<Item, DecodeError> {
        let original = usize::try_from(back)
            .ok()
            .and_then(|back| start.position().checked_sub(back))
            .filter(|&at| at >= HEADER_BYTES && at < start.position())
            .ok_or(start.error("a value is a copy of something outside the page"))?;
        let mut original = ByteReader::starting_at(self.image, original);
        match Cell::read(&mut original, false)? {
            Cell::Value { bytes, .. } => {
                self.spend(bytes.len(), start)?;
                Ok(Item::Bytes(bytes.to_vec()))
            }
            _ => Err(start.error("a value is a copy of something that is not a value")),
        }
    }

    fn end_row(&mut self, value: Option<Item>, at: &ByteReader<'_>) -> Result<(), DecodeError> {
        if let (Some(key), Some(value)) = (self.key.take(), value) {
            self.spend(0, at)?;
            self.rows.push(Row { key, value });
        }
        Ok(())
    }

    fn spend(&mut self, bytes: usize, at: &ByteReader<'_>) -> Result<(), DecodeError> {
        let spent = self.budget.spend(bytes as u64 + RowBudget::ROW_BYTES);
        spent.ok_or(at.error(OVER_BUDGET))
    }
}
