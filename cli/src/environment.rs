//! The only place that reads environment variables and the user's folders.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The arguments as typed; called through a link named `mongoperf`, as if its command had been.
pub fn command_line() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let called_as = arguments.first().map(Path::new).and_then(Path::file_name);
    if called_as.is_some_and(|name| name == "mongoperf") {
        arguments.insert(1, "mongoperf".into());
    }
    arguments
}

/// What the environment says about where things are.
#[derive(Debug)]
pub struct Environment {
    /// `PATH`.
    pub search_path: OsString,
    /// Folders in which `./x` installs tools.
    pub tool_folders: Vec<PathBuf>,
    /// Where runs record what they must clean up ([`seekscope_server::workspace`]).
    pub lease_folder: PathBuf,
}

impl Environment {
    /// Reads `PATH`, `HOME`, `XDG_CACHE_HOME`, `XDG_STATE_HOME`, `SEEKSCOPE_TOOLS`.
    pub fn read() -> Self {
        let folder = |name: &str| {
            std::env::var_os(name)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        };
        let home = folder("HOME");
        let below_home =
            |name: &str, path: &str| folder(name).or_else(|| Some(home.as_ref()?.join(path)));
        let cache = below_home("XDG_CACHE_HOME", ".cache");
        let tools = folder("SEEKSCOPE_TOOLS").or_else(|| Some(cache?.join("seekscope/tools")));
        let state = below_home("XDG_STATE_HOME", ".local/state");
        Self {
            search_path: std::env::var_os("PATH").unwrap_or_default(),
            tool_folders: tools.into_iter().map(|t| t.join("bin")).collect(),
            // A service without HOME still needs one place that its next start will look into.
            lease_folder: state
                .unwrap_or_else(|| PathBuf::from("/var/lib"))
                .join("seekscope/leases"),
        }
    }
}
