//! Nonsense and near-sense: no panic, no error but the typed ones, no number that was not there.

use proptest::prelude::*;
use seekscope_exchange::Format;

use crate::try_read;

const FORMATS: [Format; 4] = [Format::Fio, Format::Blkparse, Format::Strace, Format::Csv];

/// Valid texts of every format; parts of them get replaced.
const TEXTS: [&str; 4] = [
    "fio version 3 iolog\n1 /a add\n5 /a read 0 4096\n7 /b write 18446744073709551615 1\n9 /a wait 5 0\n",
    "8,0 3 5 0.000008289 697 D WS 223490 + 8 [kj]\n8,0 1 7 0.000108289 0 C WS 223490 + 8 [0]\n8,0 1 8 0.1 0 m N x\n",
    "5 1700000000.000001 openat(AT_FDCWD</>, \"a\\303\\244\", O_RDWR|O_DIRECT) = 3</a> <0.000011>\n\
     5 1700000000.000101 read(3</a>, \"x\\\"\"..., 4096 <unfinished ...>\n\
     6 1700000000.000103 clone3({flags=CLONE_FILES}, 88) = 7\n\
     5 1700000000.000203 <... read resumed>) = 4096 <0.000102>\n\
     5 1700000000.000303 lseek(3</a>, -5, SEEK_END) = 9223372036854775807 <0.1>\n\
     5 1700000000.000403 readv(3</a>, [{iov_base=\"\", iov_len=5}], 1) = 5\n+++ exited with 0 +++\n",
    "time_ns,op,file,offset,length,tid,latency_ns,sector\n1,read,\"/a,\"\"b\",5,6,7,8,9\n2,pwrite64,/a,,4294967295,1,,\n",
];

fn read_all(text: &[u8]) {
    for format in FORMATS {
        let (memory, summary) = try_read(format, text);
        if let Ok(summary) = summary {
            assert_eq!(summary.events, memory.events.len() as u64);
        }
        for event in &memory.events {
            memory.path(event);
        }
    }
    seekscope_exchange::detect(text);
}

#[test]
fn the_valid_texts_are_valid() {
    for (format, text) in FORMATS.into_iter().zip(TEXTS) {
        assert_eq!(seekscope_exchange::detect(text.as_bytes()), Some(format));
        let (memory, summary) = try_read(format, text.as_bytes());
        summary.unwrap();
        assert!(!memory.events.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        read_all(&bytes);
    }

    #[test]
    fn mutated_traces(
        which in 0usize..4,
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0u8..3, any::<u8>()), 1..8),
        piece in "[-0-9a-z(){}<>,=\"\\\\. |\n]{0,12}",
    ) {
        let mut text = TEXTS[which].as_bytes().to_vec();
        for (place, kind, byte) in changes {
            if text.is_empty() {
                break;
            }
            let i = place.index(text.len());
            match kind {
                0 => text[i] = byte,
                1 => text.truncate(i),
                _ => {
                    text.splice(i..i, piece.bytes());
                }
            }
        }
        read_all(&text);
    }
}

#[test]
fn more_names_than_memory_holds_end_the_reading() {
    let mut text = String::from("fio version 2 iolog\n");
    let long = "x".repeat(4000);
    for i in 0..20_000 {
        text.push_str(&format!("/{i}/{long} read 0 1\n"));
    }
    let (memory, summary) = try_read(Format::Fio, text.as_bytes());
    assert!(matches!(
        summary,
        Err(seekscope_exchange::ImportError::TooManyNames { .. })
    ));
    assert!(memory.files.len() < 17_000);
}
