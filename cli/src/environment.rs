//! The only module that reads environment variables and the user's folders.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns the arguments as typed; if called through a link named `mongoperf`, as for that command.
pub fn command_line() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let called_as = arguments.first().map(Path::new).and_then(Path::file_name);
    if called_as.is_some_and(|name| name == "mongoperf") {
        arguments.insert(1, "mongoperf".into());
    }
    arguments
}

/// What the environment says about locations.
#[derive(Debug)]
pub struct Environment {
    /// `PATH`.
    pub search_path: OsString,
    /// Folders in which `./x` installs tools.
    pub tool_folders: Vec<PathBuf>,
    /// Where runs record what must be cleaned up ([`seekscope_server::workspace`]).
    pub lease_folder: PathBuf,
}

/// Returns whether the terminal shows more than ASCII, as far as the locale tells.
pub fn has_unicode() -> bool {
    is_utf8(["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os))
}

/// The first variable that is set decides, as in locale(7).
fn is_utf8(variables: [Option<OsString>; 3]) -> bool {
    let locale = variables
        .into_iter()
        .flatten()
        .find(|value| !value.is_empty());
    let locale = locale.map(|value| value.to_string_lossy().to_ascii_lowercase());
    locale.is_some_and(|locale| locale.contains("utf-8") || locale.contains("utf8"))
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
            // A service without HOME still needs one place where its next start will look.
            lease_folder: state
                .unwrap_or_else(|| PathBuf::from("/var/lib"))
                .join("seekscope/leases"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_tells_what_can_be_shown() {
        let utf8 = |values: [&str; 3]| is_utf8(values.map(|value| Some(value.into())));
        assert!(utf8(["", "", "en_US.UTF-8"]) && utf8(["C.utf8", "", ""]));
        assert!(!utf8(["C", "en_US.UTF-8", ""]), "LC_ALL comes first");
        assert!(!is_utf8([None, None, None]));
    }
}
