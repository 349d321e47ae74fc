//! Turns an error of the driver into text for people: the driver's own text is a dump of its state, with
//! labels, sources and replies as bytes.

use std::error::Error as _;
use std::io;

use mongodb::error::{Error, ErrorKind, WriteFailure};

/// Returns the driver's error in a few words, without what is only meaningful to drivers. It may quote whatever
/// the server said, and is not yet free of secrets.
pub fn plain(error: &Error) -> String {
    match error.kind.as_ref() {
        ErrorKind::Command(e) => coded(&e.message, e.code, Some(&e.code_name)),
        ErrorKind::Write(WriteFailure::WriteError(e)) => {
            coded(&e.message, e.code, e.code_name.as_deref())
        }
        ErrorKind::Write(WriteFailure::WriteConcernError(e)) => {
            coded(&e.message, e.code, Some(&e.code_name))
        }
        ErrorKind::InsertMany(e) => {
            let refused = e.write_errors.as_deref().unwrap_or_default();
            match (refused.first(), &e.write_concern_error) {
                (Some(first), _) => coded(&first.message, first.code, first.code_name.as_deref()),
                (None, Some(e)) => coded(&e.message, e.code, Some(&e.code_name)),
                (None, None) => "an insert failed, and the server gave no reason".into(),
            }
        }
        ErrorKind::Authentication { message, .. } => {
            match error.source().and_then(|e| e.downcast_ref::<Error>()) {
                Some(source) => plain(source),
                None => of_login(message),
            }
        }
        ErrorKind::InvalidArgument { message, .. } => without_labels(message),
        ErrorKind::InvalidTlsConfig { message, .. } => without_number(message).into(),
        ErrorKind::DnsResolve { message, .. } => match message.contains("no records found") {
            true => "DNS has no record for its name".into(),
            false => format!("its name cannot be looked up in DNS ({message})"),
        },
        ErrorKind::Io(e) => of_io(e),
        other => without_labels(&other.to_string()),
    }
}

/// Returns a system error in its own words.
pub(crate) fn of_io(error: &io::Error) -> String {
    let text = error.to_string();
    match without_number(&text) {
        words if words.len() < text.len() => words.to_lowercase(),
        _ => text,
    }
}

/// Removes the number at the end of a system error, which is of no use beside the words.
fn without_number(text: &str) -> &str {
    text.split_once(" (os error")
        .map_or(text, |(words, _)| words)
}

/// Shortens texts such as "SCRAM failure: Authentication failed.", leaving out the mechanism.
fn of_login(message: &str) -> String {
    let text = message
        .split_once(" failure: ")
        .map_or(message, |(_, why)| why);
    without_labels(text.trim_end_matches('.'))
}

fn coded(message: &str, code: i32, name: Option<&str>) -> String {
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("{message} ({code} {name})"),
        None => format!("{message} ({code})"),
    }
}

/// Removes the labels, sources and the like of other errors that some of the driver's texts quote.
pub fn without_labels(text: &str) -> String {
    const END: &str = "server response: None";
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(", labels: {") {
        kept.push_str(before);
        rest = after.split_once(END).map_or("", |(_, after)| after);
    }
    (kept + rest).replace("Kind: ", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_to_drivers_alone_is_left_out() {
        let text = "Servers: [ { Address: a, Error: Kind: I/O error: end of file, labels: {\"Retry\", \"B\"}, \
                    source: None, server response: None }, { Address: b, Error: x, labels: {}, source: None, \
                    server response: None } ]";
        let expected =
            "Servers: [ { Address: a, Error: I/O error: end of file }, { Address: b, Error: x } ]";
        assert_eq!(without_labels(text), expected);
        assert_eq!(without_labels("no, labels: {cut"), "no");
    }

    #[test]
    fn errors_of_the_system_need_no_numbers() {
        let error = Error::from(io::Error::from_raw_os_error(111));
        assert_eq!(plain(&error), "connection refused");
        let error = Error::from(io::Error::other("invalid peer certificate: UnknownIssuer"));
        assert_eq!(plain(&error), "invalid peer certificate: UnknownIssuer");
        assert_eq!(
            of_login("SCRAM failure: Authentication failed."),
            "Authentication failed"
        );
    }
}
