//! What is asked for, checked. Fields and defaults as in the old program:
//!
//! | field | default | meaning |
//! |---|---|---|
//! | `nThreads` | 1 | threads of the last step; must be a 32-bit whole number |
//! | `fileSizeMB` | 1 | size of the test file, MiB; a fraction is cut off |
//! | `recSizeKB` | 4 | KiB per operation, at most 64000 |
//! | `r`, `w` | false | reads, writes; at least one must be true |
//! | `mmf` | false | through a shared mapping instead of direct I/O |
//! | `sleepMicros` | 0 | pause after each round of operations, µs |
//! | `syncDelay` | 0 | with `mmf`: flush the mapping this many seconds after the last flush ended |
//!
//! The old program accepted several values that made it misbehave (negative numbers, records larger
//! than the file, thousands of threads); here they are refused before anything is created.

use std::time::Duration;

use super::document::{Document, Value};

/// The most threads; more would measure the scheduler.
const THREADS_MAX: u32 = 4096;
/// The old program's own limit.
const RECORD_KIB_MAX: u64 = 64_000;
/// Offsets are multiples of this, and a mapping is touched once in each.
pub(crate) const PAGE_BYTES: u64 = 4096;

const KNOWN_FIELDS: [&str; 8] = [
    "nThreads",
    "fileSizeMB",
    "recSizeKB",
    "r",
    "w",
    "mmf",
    "sleepMicros",
    "syncDelay",
];

/// The checked options of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// 0 is refused by the caller, after printing the old program's complaint.
    pub(crate) threads: u32,
    /// Size of the file, bytes: at least one page.
    pub(crate) file_bytes: u64,
    /// Bytes of each operation, as requested; at most `file_bytes`.
    pub(crate) record_bytes: u64,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// Whether to use a mapping (mmf) instead of direct I/O.
    pub(crate) mapped: bool,
    pub(crate) sleep: Duration,
    /// Also `None` without `mmf`.
    pub(crate) sync_delay: Option<Duration>,
}

/// Why the options cannot be carried out.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum OptionsError {
    #[error(
        "nThreads must be a whole number that fits 32 bits, without fraction or quotes, not {0}"
    )]
    ThreadsType(String),
    #[error("one of r and w must be true: say r:true for reads, w:true for synchronous writes")]
    NothingToDo,
    #[error("{field} must be {expected}, not {value}")]
    OutOfRange {
        field: &'static str,
        value: i64,
        expected: &'static str,
    },
    #[error(
        "a record of {record_kib} KiB (recSizeKB) does not fit into a file of {file_mib} MiB (fileSizeMB); make the file larger"
    )]
    RecordExceedsFile { record_kib: u64, file_mib: u64 },
}

impl Options {
    /// Reads the known fields. Calls `notice` for anything that was probably meant differently.
    pub(crate) fn of(
        document: &Document,
        notice: &mut dyn FnMut(&str),
    ) -> Result<Self, OptionsError> {
        let mut fields = Fields { document, notice };
        fields.report_unknown();
        let (reads, writes) = (fields.truth("r"), fields.truth("w"));
        if !reads && !writes {
            return Err(OptionsError::NothingToDo);
        }
        let mapped = fields.truth("mmf");
        let threads = fields.threads()?;
        let file_mib = fields.number(
            "fileSizeMB",
            1,
            i64::MAX >> 20,
            "from 1 to what the disk holds",
        )?;
        let record_kib = fields.number(
            "recSizeKB",
            4,
            RECORD_KIB_MAX.cast_signed(),
            "from 1 to 64000",
        )?;
        let (file_bytes, record_bytes) = (file_mib << 20, record_kib << 10);
        if record_bytes > file_bytes {
            return Err(OptionsError::RecordExceedsFile {
                record_kib,
                file_mib,
            });
        }
        let sleep_us = fields.number("sleepMicros", 0, i64::MAX, "0 or more")?;
        let sync_delay_s =
            fields.number("syncDelay", 0, i64::from(i32::MAX), "from 0 to 2147483647")?;
        if sync_delay_s > 0 && !mapped {
            (fields.notice)("syncDelay has no effect without mmf: direct writes are synchronous");
        }
        Ok(Self {
            threads,
            file_bytes,
            record_bytes,
            reads,
            writes,
            mapped,
            sleep: Duration::from_micros(sleep_us),
            sync_delay: (sync_delay_s > 0 && mapped).then(|| Duration::from_secs(sync_delay_s)),
        })
    }
}

struct Fields<'a> {
    document: &'a Document,
    notice: &'a mut dyn FnMut(&str),
}

impl Fields<'_> {
    fn report_unknown(&mut self) {
        for (name, _) in &self.document.0 {
            let name = String::from_utf8_lossy(name);
            if !KNOWN_FIELDS.contains(&&*name) {
                (self.notice)(&format!(
                    "field {} is unknown and is ignored",
                    name.escape_debug()
                ));
            }
        }
    }

    fn truth(&mut self, field: &str) -> bool {
        let Some(value) = self.document.get(field) else {
            return false;
        };
        if matches!(value, Value::Text(_) | Value::Object(_) | Value::Array(_)) {
            (self.notice)(&format!(
                "{field} counts as true: it is neither a boolean nor a number"
            ));
        }
        value.is_true()
    }

    fn threads(&mut self) -> Result<u32, OptionsError> {
        let threads = match self.document.get("nThreads") {
            None => 1,
            Some(Value::Int(threads)) => *threads,
            Some(Value::Long(_)) => return Err(threads_type("a larger number")),
            Some(Value::Double(_)) => {
                return Err(threads_type("a number with fraction or exponent"));
            }
            Some(Value::Text(_)) => return Err(threads_type("a text")),
            Some(_) => return Err(threads_type("another kind of value")),
        };
        let accepted = u32::try_from(threads).ok().filter(|&n| n <= THREADS_MAX);
        accepted.ok_or(OptionsError::OutOfRange {
            field: "nThreads",
            value: threads.into(),
            expected: "from 1 to 4096",
        })
    }

    /// Reads a number; 0 and anything that is not a number mean the default.
    fn number(
        &mut self,
        field: &'static str,
        default: u64,
        max: i64,
        expected: &'static str,
    ) -> Result<u64, OptionsError> {
        let given = self.document.get(field);
        let value = given
            .map_or(Some(0), Value::whole_number)
            .unwrap_or_else(|| {
                (self.notice)(&format!("{field} is not a number: {default} is used"));
                0
            });
        match u64::try_from(value) {
            Ok(0) => Ok(default),
            Ok(number) if value <= max => Ok(number),
            _ => Err(OptionsError::OutOfRange {
                field,
                value,
                expected,
            }),
        }
    }
}

fn threads_type(found: &str) -> OptionsError {
    OptionsError::ThreadsType(found.into())
}

#[cfg(test)]
mod tests {
    use super::super::input::parse;
    use super::*;

    fn read(input: &str) -> (Result<Options, OptionsError>, Vec<String>) {
        let document = parse(input.as_bytes()).unwrap();
        let mut notices = Vec::new();
        let options = Options::of(&document, &mut |text| notices.push(text.to_string()));
        (options, notices)
    }

    fn plain() -> Options {
        Options {
            threads: 1,
            file_bytes: 1 << 20,
            record_bytes: 4096,
            reads: true,
            writes: false,
            mapped: false,
            sleep: Duration::ZERO,
            sync_delay: None,
        }
    }

    #[test]
    fn defaults_stand_for_zero_and_for_what_is_no_number() {
        let mib = |file_mib: u64| Options {
            file_bytes: file_mib << 20,
            ..plain()
        };
        for (input, expected, notices) in [
            ("{r:true}", plain(), 0),
            (
                "{r:true,nThreads:0}",
                Options {
                    threads: 0,
                    ..plain()
                },
                0,
            ),
            ("{r:1,fileSizeMB:0,recSizeKB:0}", plain(), 0),
            ("{r:0.1,fileSizeMB:2.9}", mib(2), 0),
            ("{r:true,fileSizeMB:0.9}", plain(), 0),
            ("{r:true,fileSizeMB:'7'}", plain(), 1),
            ("{r:true,fileSizeMB:NaN,recSizeKB:4.9}", plain(), 0),
            ("{r:'false'}", plain(), 1),
            ("{r:{},w:null}", plain(), 1),
            ("{r:true,fileSizeMB:3,fileSizeMB:4}", mib(3), 0),
            ("{r:true,nthreads:5,sub:{r:false}}", plain(), 2),
            ("{r:true,syncDelay:5}", plain(), 1),
            (
                "{w:true,mmf:1,sleepMicros:250,syncDelay:5,recSizeKB:64}",
                Options {
                    record_bytes: 64 << 10,
                    reads: false,
                    writes: true,
                    mapped: true,
                    sleep: Duration::from_micros(250),
                    sync_delay: Some(Duration::from_secs(5)),
                    ..plain()
                },
                0,
            ),
        ] {
            let (options, told) = read(input);
            assert_eq!(options, Ok(expected), "{input}");
            assert_eq!(told.len(), notices, "{input}: {told:?}");
        }
    }

    #[test]
    fn threads_must_be_of_the_32_bit_type() {
        for wrong in [
            "32.0",
            "'32'",
            "3e1",
            "5000000000",
            "true",
            "null",
            "NumberLong(5)",
        ] {
            let (options, _) = read(&format!("{{r:true,nThreads:{wrong}}}"));
            assert!(
                matches!(options, Err(OptionsError::ThreadsType(_))),
                "{wrong}"
            );
        }
        let (options, _) = read("{r:true,nThreads:NumberInt(5)}");
        assert_eq!(options.unwrap().threads, 5);
    }

    #[test]
    fn what_made_the_old_program_misbehave_is_refused() {
        for (input, named) in [
            ("{r:true,nThreads:-1}", "nThreads"),
            ("{r:true,nThreads:4097}", "nThreads"),
            ("{r:true,fileSizeMB:-1}", "fileSizeMB"),
            ("{r:true,fileSizeMB:1e300}", "fileSizeMB"),
            ("{r:true,recSizeKB:64001,fileSizeMB:100}", "recSizeKB"),
            ("{r:true,recSizeKB:-4}", "recSizeKB"),
            ("{r:true,recSizeKB:1025}", "recSizeKB"),
            ("{r:true,sleepMicros:-1}", "sleepMicros"),
            ("{r:true,mmf:true,syncDelay:-1}", "syncDelay"),
            ("{r:true,mmf:true,syncDelay:3000000000}", "syncDelay"),
            ("{nThreads:2}", "r and w"),
            ("{}", "r and w"),
        ] {
            let (options, _) = read(input);
            let error = options.unwrap_err().to_string();
            assert!(error.contains(named), "{input}: {error}");
        }
        let (options, _) = read("{r:true,recSizeKB:64000,fileSizeMB:63}");
        assert_eq!(options.unwrap().record_bytes, 65_536_000);
    }
}
