use bson::{Document, doc};
use proptest::prelude::*;

use super::*;

fn message(document: &Document, flags: u32) -> Vec<u8> {
    let body = document.to_vec().unwrap();
    let checksum: &[u8] = if flags & 1 == 1 { &[1, 2, 3, 4] } else { &[] };
    let length = i32::try_from(HEADER_BYTES + 5 + body.len() + checksum.len()).unwrap();
    let mut bytes = Vec::new();
    for number in [length, 1, 77, OP_MSG] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&flags.to_le_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&body);
    bytes.extend_from_slice(checksum);
    bytes
}

fn found() -> Document {
    doc! {
        "cursor": { "firstBatch": [{ "_id": "a" }, { "_id": "b" }], "id": 9_i64, "ns": "db.c" },
        "ok": 1.0,
    }
}

#[test]
fn reads_a_batch_of_a_cursor() {
    for flags in [0, 1, 1 << 16] {
        let bytes = message(&found(), flags);
        let answer = read(&bytes, 77).unwrap();
        let batch = answer.batch.unwrap();
        assert_eq!((batch.cursor, batch.documents), (9, 2));
        assert_eq!(&bytes[batch.namespace], b"db.c");
        let first = document_at(&bytes, &batch.first.unwrap()).unwrap();
        assert_eq!(first.get_str("_id").unwrap(), "a");
        let body = document_at(&bytes, &answer.body).unwrap();
        assert!(body.get_document("cursor").is_ok());
    }
}

#[test]
fn reads_what_writes_did() {
    let answer = read(
        &message(&doc! { "n": 3, "nModified": 2_i64, "ok": 1 }, 0),
        77,
    )
    .unwrap();
    assert_eq!((answer.matched, answer.modified), (3, 2));
}

#[test]
fn failures_carry_what_the_server_said() {
    let fail = |document| read(&message(&document, 0), 77).unwrap_err();
    let whole = fail(doc! {
        "ok": 0, "errmsg": "not\nprimary", "code": 10107, "codeName": "NotWritablePrimary",
    });
    assert_eq!(whole.kind, FailureKind::NotPrimary);
    assert_eq!(whole.name, "NotWritablePrimary");
    assert_eq!(whole.message, "not primary");
    let label = fail(doc! { "ok": 0, "code": 251, "errorLabels": ["TransientTransactionError"] });
    assert_eq!(
        (label.kind, label.name.as_str()),
        (FailureKind::Transient, "Code251")
    );
    let part = fail(doc! {
        "n": 5, "writeErrors": [{ "index": 5, "code": 11000, "errmsg": "E11000" }], "ok": 1,
    });
    assert_eq!((part.kind, part.done), (FailureKind::Duplicate, 5));
    assert_eq!(
        (part.name.as_str(), part.code),
        ("DuplicateKey", Some(11000))
    );
    let concern = fail(doc! {
        "n": 1, "writeConcernError": { "code": 64, "codeName": "WriteConcernTimeout" }, "ok": 1,
    });
    assert_eq!((concern.kind, concern.done), (FailureKind::WriteConcern, 1));
    assert_eq!(concern.name, "WriteConcernTimeout");
    assert_eq!(fail(doc! {}).name, "Code0", "no `ok` is not ok");
}

#[test]
fn what_breaks_the_protocol_is_refused() {
    let good = message(&found(), 0);
    let refused = |change: &dyn Fn(&mut Vec<u8>), id: i32| {
        let mut bytes = good.clone();
        change(&mut bytes);
        let failure = read(&bytes, id).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Malformed, "{}", failure.message);
        failure.message
    };
    assert!(refused(&|_| (), 78).contains("a different request"));
    assert!(refused(&|b| b[12] = 1, 77).contains("not an OP_MSG"));
    assert!(refused(&|b| b[16] = 2, 77).contains("more replies"));
    assert!(refused(&|b| b[16] = 4, 77).contains("flags"));
    assert!(
        refused(&|b| b[16] = 1, 77).contains("fill"),
        "no checksum there"
    );
    assert!(refused(&|b| b[20] = 1, 77).contains("body"));
    assert!(refused(&|b| b.push(0), 77).contains("fill"));
    assert!(refused(&|b| b.truncate(30), 77).contains("fill"));
    assert!(refused(&|b| b[25] = 0x44, 77).contains("not valid BSON"));
}

#[test]
fn lengths_are_bounded() {
    assert_eq!(message_length(&[1, 0], 100), Ok(None));
    assert_eq!(message_length(&[99, 0, 0, 0], 100), Ok(Some(99)));
    for bytes in [[101, 0, 0, 0], [16, 0, 0, 0], [0; 4], [0xFF; 4]] {
        assert!(message_length(&bytes, 100).is_err());
    }
}

proptest! {
    #[test]
    fn mangled_replies_never_panic(
        changes in proptest::collection::vec((0usize..200, any::<u8>()), 1..6),
        cut in 0usize..200,
        partial in any::<bool>(),
    ) {
        let document = if partial {
            doc! { "n": 1, "writeErrors": [{ "code": 1 }], "errorLabels": ["x"], "ok": 1 }
        } else {
            found()
        };
        let mut bytes = message(&document, 1);
        for (at, value) in changes {
            let length = bytes.len();
            bytes[at % length] = value;
        }
        bytes.truncate(cut.max(HEADER_BYTES + 1));
        if let Ok(answer) = read(&bytes, 77) {
            prop_assert!(answer.body.end <= bytes.len());
        }
        let _ = message_length(&bytes, 1000);
    }
}
