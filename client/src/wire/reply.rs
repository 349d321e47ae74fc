//! Reads a server's reply, strictly but only where it matters.
//!
//! The message format is OP_MSG
//! (<https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/#op_msg>).

use std::ops::Range;

use bson::RawDocument;

use super::elements::{DOCUMENT, Element, Elements, NotBson, document_length};
use crate::server_codes::kind_of_server_error;
use crate::{Failure, FailureKind};

/// Length, request, responding to, operation.
pub(crate) const HEADER_BYTES: usize = 16;
const OP_MSG: i32 = 2013;
const CHECKSUM_PRESENT: u32 = 1;
const MORE_TO_COME: u32 = 2;
/// A receiver must refuse flags of the lower half that it does not know.
const REQUIRED_FLAGS: u32 = 0xFFFF;
const FLAGS_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4;
/// Servers' texts are cut to this length before they are shown.
const TEXT_BYTES_MAX: usize = 400;
const NAME_BYTES_MAX: usize = 64;

/// The positions of the parts of a successful reply, counted from the start of the message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) body: Range<usize>,
    /// `n` and `nModified`.
    pub(crate) matched: u64,
    pub(crate) modified: u64,
    pub(crate) batch: Option<Batch>,
}

/// A batch of a cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// 0 if nothing more follows.
    pub(crate) cursor: i64,
    pub(crate) documents: u64,
    pub(crate) first: Option<Range<usize>>,
    /// "database.collection".
    pub(crate) namespace: Range<usize>,
}

/// Reads a whole message, `bytes`, which answers `request_id`.
pub(crate) fn read(bytes: &[u8], request_id: i32) -> Result<Answer, Failure> {
    let body = body_of(bytes, request_id)?;
    let mut fields = Fields::default();
    fields
        .read(bytes, &body)
        .map_err(|NotBson| malformed("its document is not valid BSON"))?;
    fields.judge(body)
}

pub(crate) fn malformed(what: &str) -> Failure {
    Failure::of(
        FailureKind::Malformed,
        "MalformedReply",
        format!("the server's reply breaks the protocol: {what}"),
    )
}

/// Returns the message's length from its first bytes, if they have arrived.
pub(crate) fn message_length(bytes: &[u8], bytes_max: usize) -> Result<Option<usize>, Failure> {
    let Some(prefix) = bytes.first_chunk::<4>() else {
        return Ok(None);
    };
    match usize::try_from(i32::from_le_bytes(*prefix)) {
        Ok(length) if length > HEADER_BYTES && length <= bytes_max => Ok(Some(length)),
        _ => Err(malformed("its length is impossible")),
    }
}

/// Returns the number at a position of the header, in units of four bytes.
pub(crate) fn header_number(bytes: &[u8], place: usize) -> Option<i32> {
    let field = bytes.get(place * 4..)?.first_chunk::<4>()?;
    Some(i32::from_le_bytes(*field))
}

/// Checks the framing and returns the place of the only document.
fn body_of(bytes: &[u8], request_id: i32) -> Result<Range<usize>, Failure> {
    if header_number(bytes, 3) != Some(OP_MSG) {
        return Err(malformed("it is not an OP_MSG"));
    }
    if header_number(bytes, 2) != Some(request_id) {
        return Err(malformed("it answers a different request"));
    }
    let flags = header_number(bytes, 4).map_or(0, i32::cast_unsigned);
    if flags & MORE_TO_COME != 0 {
        return Err(malformed(
            "it announces more replies, which were not requested",
        ));
    }
    if flags & REQUIRED_FLAGS & !CHECKSUM_PRESENT != 0 {
        return Err(malformed("it has unknown flags"));
    }
    let start = HEADER_BYTES + FLAGS_BYTES + 1;
    let checksum = if flags & CHECKSUM_PRESENT == 0 {
        0
    } else {
        CHECKSUM_BYTES
    };
    let section = bytes.get(start..).unwrap_or_default();
    match (bytes.get(start - 1), document_length(section)) {
        (Some(0), Ok(length)) if length + checksum == section.len() => Ok(start..start + length),
        (Some(0), _) => Err(malformed("its document does not fill the message")),
        _ => Err(malformed("it does not begin with a body")),
    }
}

/// The fields of a reply's top level that matter.
#[derive(Debug, Default)]
struct Fields<'a> {
    ok: bool,
    matched: u64,
    modified: u64,
    batch: Option<Batch>,
    code: Option<i32>,
    code_name: Option<&'a [u8]>,
    message: Option<&'a [u8]>,
    labels: Option<Element<'a>>,
    write_error: Option<Element<'a>>,
    write_concern_error: Option<Element<'a>>,
}

impl<'a> Fields<'a> {
    fn read(&mut self, bytes: &'a [u8], body: &Range<usize>) -> Result<(), NotBson> {
        let document = bytes.get(body.clone()).ok_or(NotBson)?;
        for element in Elements::of(document)? {
            let element = element?;
            match element.name {
                b"ok" => self.ok = element.integer() == Some(1),
                b"n" => self.matched = element.count().unwrap_or(0),
                b"nModified" => self.modified = element.count().unwrap_or(0),
                b"cursor" if element.kind == DOCUMENT => {
                    self.batch = Some(read_batch(bytes, &element)?);
                }
                b"writeErrors" => self.write_error = first_of(&element)?,
                b"writeConcernError" => self.write_concern_error = Some(element),
                b"errorLabels" => self.labels = Some(element),
                _ => self.read_error(&element),
            }
        }
        Ok(())
    }

    /// Reads what an error consists of, whether it is the whole reply or one of a batch.
    fn read_error(&mut self, element: &Element<'a>) {
        match element.name {
            b"code" => self.code = element.integer().and_then(|code| i32::try_from(code).ok()),
            b"codeName" => self.code_name = element.text(),
            b"errmsg" => self.message = element.text(),
            _ => (),
        }
    }

    fn judge(mut self, body: Range<usize>) -> Result<Answer, Failure> {
        if !self.ok {
            return Err(self.failure(None));
        }
        let partial = self.write_error.or(self.write_concern_error);
        if let Some(error) = partial {
            let only_concern = self.write_error.is_none();
            for part in error.elements().into_iter().flatten().flatten().flatten() {
                self.read_error(&part);
            }
            return Err(self.failure(only_concern.then_some(FailureKind::WriteConcern)));
        }
        Ok(Answer {
            body,
            matched: self.matched,
            modified: self.modified,
            batch: self.batch,
        })
    }

    fn failure(&self, kind: Option<FailureKind>) -> Failure {
        let message = shown(self.message.unwrap_or_default(), TEXT_BYTES_MAX);
        let labels = self
            .labels
            .iter()
            .filter_map(Element::elements)
            .flatten()
            .flatten()
            .flatten()
            .filter_map(|label| std::str::from_utf8(label.text()?).ok());
        let code = self.code.unwrap_or(0);
        let kind = kind.unwrap_or_else(|| kind_of_server_error(code, labels, &message));
        let name = match self.code_name {
            Some(name) if !name.is_empty() => shown(name, NAME_BYTES_MAX),
            _ if kind == FailureKind::Duplicate => "DuplicateKey".into(),
            _ => format!("Code{code}"),
        };
        Failure {
            kind,
            code: self.code,
            name,
            message,
            done: self.matched,
        }
    }
}

/// Returns the first element of an array.
fn first_of<'a>(array: &Element<'a>) -> Result<Option<Element<'a>>, NotBson> {
    match array.elements() {
        Some(elements) => elements?.next().transpose(),
        None => Ok(None),
    }
}

fn read_batch<'a>(message: &'a [u8], cursor: &Element<'a>) -> Result<Batch, NotBson> {
    let mut batch = Batch::default();
    for element in Elements::of(cursor.value)? {
        let element = element?;
        match element.name {
            b"id" => batch.cursor = element.integer().unwrap_or(0),
            b"ns" => {
                batch.namespace = element.text().map_or(0..0, |text| place_in(message, text));
            }
            b"firstBatch" | b"nextBatch" => {
                for document in element.elements().ok_or(NotBson)?? {
                    let document = document?;
                    if document.kind != DOCUMENT {
                        return Err(NotBson);
                    }
                    if batch.documents == 0 {
                        batch.first = Some(place_in(message, document.value));
                    }
                    batch.documents += 1;
                }
            }
            _ => (),
        }
    }
    Ok(batch)
}

/// Returns where a slice of `whole` lies in it.
fn place_in(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(whole.as_ptr().addr());
    start..start + part.len()
}

/// Returns a server's text made harmless.
fn shown(text: &[u8], bytes_max: usize) -> String {
    let cut = &text[..text.len().min(bytes_max)];
    String::from_utf8_lossy(cut)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Returns the document at a position of a message.
pub(crate) fn document_at<'a>(message: &'a [u8], place: &Range<usize>) -> Option<&'a RawDocument> {
    RawDocument::from_bytes(message.get(place.clone())?).ok()
}

#[cfg(test)]
mod tests;
