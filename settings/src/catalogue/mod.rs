//! Holds the knobs that seekscope knows, in the format of [`crate::knob_file`].
//!
//! Ranges, defaults and versions of `mongod.toml` come from the server's parameter definitions and from
//! WiredTiger's table of configuration keys of each release. Where a key's default or limits changed, there
//! is a row for each: the first row of a name that a server has is used.

use crate::knob_file::{KnobFile, KnobFileError};

/// The file for mongod.
pub const MONGOD: &str = include_str!("mongod.toml");
/// The file for the start options of secantusd-rs.
pub const SECANTUSD: &str = include_str!("secantusd.toml");
/// The file for the host's kernel.
pub const HOST: &str = include_str!("host.toml");

/// The program whose knobs are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerProgram {
    /// mongod, our own or not, or a compatible server.
    Mongod,
    /// secantusd-rs, started by us.
    Secantusd,
}

/// Reads the compiled-in files.
#[derive(Debug)]
pub struct Catalogue;

impl Catalogue {
    /// Returns the knobs of a server and of its host.
    ///
    /// # Errors
    /// Returns no error in a build whose tests passed.
    pub fn of(program: ServerProgram) -> Result<KnobFile, KnobFileError> {
        let mut file = KnobFile::parse(match program {
            ServerProgram::Mongod => MONGOD,
            ServerProgram::Secantusd => SECANTUSD,
        })?;
        file.merge(KnobFile::parse(HOST)?);
        Ok(file)
    }
}

#[cfg(test)]
mod tests;
