//! The parser against files that real servers wrote, whole and damaged.

mod directory;
mod mongod;
