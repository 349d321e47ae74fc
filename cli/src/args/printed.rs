//! The commands that findings print, for the test that parses them: taken from the source of the whole
//! doctor, so that none is missed because no test has the illness, or because it moved to another file.

use std::path::{Path, PathBuf};

/// What may stand where a detector puts in a value.
const VALUES: [&str; 2] = ["mongodb://db1:27017/", "shop.orders"];

/// Lines that call seekscope, in each of the ways in which their values may be filled in.
pub fn printed_commands() -> Vec<Vec<String>> {
    let sources = sources_below(Path::new("../doctor/src")).into_iter();
    let texts = sources.flat_map(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        let code = text.split("\nmod tests {").next().unwrap_or_default();
        let commands = code.split("\"seekscope ").skip(1);
        let commands = commands.filter_map(|rest| rest.split('"').next());
        let lines = commands.map(|rest| ways(&format!("seekscope {rest}")));
        lines.collect::<Vec<_>>()
    });
    texts.collect()
}

fn sources_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let paths = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => sources_below(&path),
        path => vec![path],
    });
    paths.collect()
}

/// Each value in each of the places.
fn ways(template: &str) -> Vec<String> {
    let Some((before, rest)) = template.split_once('{') else {
        return vec![template.into()];
    };
    let after = rest.split_once('}').map_or("", |(_, after)| after);
    let rests = ways(after);
    let ways = VALUES.iter().flat_map(|value| {
        rests
            .iter()
            .map(move |rest| format!("{before}{value}{rest}"))
    });
    ways.collect()
}
