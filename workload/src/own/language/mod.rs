//! Defines the language as written: one type for each table, nothing resolved yet.
//!
//! Unknown fields and wrong types are rejected while parsing, at their line. Errors that only show when
//! tables are seen together (a reference to a missing collection) are found by [`super::plan`].

mod distribution;
mod field;
mod operation;
mod ordered;
mod phase;
mod short_form;
mod source;
mod workload_file;

pub use distribution::{Bucket, Distribution, Limits};
pub use field::{
    Array, Bytes, Dates, Field, Generator, NumberKind, ObjectIds, Point, PointForm, Reference,
    Sequence, Share, Text, Weighted,
};
pub use operation::{
    Action, Aggregate, Command, CreateIndex, Delete, Distinct, DropIndex, Find, FindOne, Insert,
    Keys, Load, Operation, Transaction, Update,
};
pub use ordered::Ordered;
pub use phase::{Arrivals, ErrorPolicy, Phase, Ramp, RateShare, Reaction, Role, Time};
pub use source::Source;
pub use workload_file::{Collection, Index, When, WorkloadFile};
