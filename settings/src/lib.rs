//! Handles knobs of real servers: which there are, what they are set to, and how they are set and put back.
//!
//! A [`knob_file::KnobFile`] describes knobs, as people write them (TOML); the [`catalogue`] holds the
//! compiled-in ones. [`discovery`] finds which of them a server has and what their values are, so that the
//! search starts from the present values. [`originals`] records those values before anything is changed; an
//! [`apply::Applier`] sets a configuration and reads it back; [`apply::Applier::restore`] undoes it, also
//! from another process after a crash. [`mod@exports`] are texts for people who make the change permanent.
//!
//! Nothing here prints or reads the environment. A folder that stands for `/` is passed in as
//! [`host_files::HostFiles`].

pub mod apply;
pub mod catalogue;
pub mod discovery;
mod engine_string;
pub mod exports;
pub mod host_files;
pub mod knob_file;
pub mod lock;
pub mod mongod_conf;
pub mod originals;
mod reign;
pub mod script;
pub mod traffic;
pub mod version;

pub use apply::{
    Applied, Applier, Appliers, ApplyError, ByRestart, KeptEdits, Means, Restart, Restored,
    SetByOthers, Silent,
};
pub use catalogue::{Catalogue, ServerProgram};
pub use discovery::{
    ChooseError, Chosen, Discovered, Runs, ServerMemory, ServerReplies, Source, Surroundings,
    Unlocked, discover, read_scripts,
};
pub use exports::exports;
pub use host_files::HostFiles;
pub use knob_file::{KnobEntry, KnobFile, KnobFileError, Preset, Route, RunMin};
pub use lock::{LockError, TunerLock};
pub use originals::{Originals, OriginalsError};
pub use reign::{PrimaryChanged, Reign};
pub use traffic::Traffic;
