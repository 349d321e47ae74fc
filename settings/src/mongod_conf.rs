//! Edits `mongod.conf`: YAML whose settings are named by dotted paths.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use seekscope_run::tune::KnobValue;
use yaml_serde::{Mapping, Value};
use yamlpatch::{Op, Patch};
use yamlpath::{Component, Document, Route};

use crate::engine_string;

const FILE_MAX_BYTES: u64 = 1 << 20;

/// One setting. With a key, the path holds a WiredTiger text in which the key is set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    pub(crate) path: String,
    pub(crate) key: Option<String>,
    pub(crate) suffix: String,
    pub(crate) value: KnobValue,
}

/// Start of a file whose comments could not be kept.
const REWRITTEN: &str = "# seekscope wrote this file anew with the same settings: its form left no room for a change in place, and its\n\
     # comments are lost.\n";

/// Returns the file with the settings in it: changed in place, so that comments and format are kept. Where
/// that does not give the wanted settings, it is rewritten, and says so.
pub(crate) fn edited(text: &str, settings: &[Setting]) -> Result<String, String> {
    let mut root: Value = yaml_serde::from_str(text).map_err(|error| error.to_string())?;
    if root.is_null() {
        root = Value::Mapping(Mapping::new());
    }
    let mut patches = Vec::new();
    for setting in settings {
        let new = new_value(&root, setting)?;
        patches.extend(patches_of(&root, &setting.path, new.clone()));
        *place(&mut root, &setting.path)? = new;
    }
    let means_the_same =
        |text: &String| yaml_serde::from_str::<Value>(text).is_ok_and(|v| v == root);
    let in_place = patched(text, &patches).filter(means_the_same);
    match in_place {
        Some(text) => Ok(text),
        None => {
            let anew = yaml_serde::to_string(&root).map_err(|error| error.to_string())?;
            let had_comments = text.contains('#');
            Ok(if had_comments {
                REWRITTEN.to_string() + &anew
            } else {
                anew
            })
        }
    }
}

/// Returns the file that the server logs to, if it logs to one whose place is known.
pub(crate) fn log_path(text: &str) -> Option<PathBuf> {
    let root: Value = yaml_serde::from_str(text).ok()?;
    let log = root.get("systemLog")?;
    let path = PathBuf::from(log.get("path")?.as_str()?);
    let is_file = log.get("destination")?.as_str()? == "file";
    (is_file && path.is_absolute()).then_some(path)
}

/// Returns the original text with what was edited between `written` and `found`; `None` if that touches what was
/// written, or gives no configuration.
pub(crate) fn merged(original: &str, written: &str, found: &str) -> Option<String> {
    let merged = diffy::merge(written, original, found).ok()?;
    let value: Value = yaml_serde::from_str(&merged).ok()?;
    (value.is_mapping() || value.is_null()).then_some(merged)
}

/// Returns whether both files say the same of these settings, whatever the settings' values.
pub(crate) fn agree(one: &str, other: &str, settings: &[Setting]) -> bool {
    let parse = |text| yaml_serde::from_str::<Value>(text).ok();
    let (Some(one), Some(other)) = (parse(one), parse(other)) else {
        return false;
    };
    let said = |root: &Value, setting: &Setting| {
        let mut parts = setting.path.split('.');
        let value = parts.try_fold(root, |at, part| at.get(part)).cloned()?;
        match (&setting.key, value.as_str()) {
            (Some(key), Some(text)) => engine_string::lookup(text, key).map(Value::String),
            _ => Some(value),
        }
    };
    (settings.iter()).all(|setting| said(&one, setting) == said(&other, setting))
}

/// Applies the patches; `None` if the library refuses.
fn patched(text: &str, patches: &[Patch<'_>]) -> Option<String> {
    let document = Document::new(text).ok()?;
    let patched = yamlpatch::apply_yaml_patches(&document, patches).ok()?;
    Some(patched.source().to_string())
}

/// Replaces an existing value, or adds what is missing to the innermost existing part.
fn patches_of<'a>(root: &Value, path: &'a str, new: Value) -> Vec<Patch<'a>> {
    let parts: Vec<&str> = path.split('.').collect();
    let mut at = root;
    let mut known = 0;
    while let Some(inner) = parts.get(known).and_then(|part| at.get(*part)) {
        at = inner;
        known += 1;
    }
    let patch = |depth: usize, operation: Op<'a>| {
        let keys = parts[..depth].iter().map(|part| Component::from(*part));
        Patch {
            route: Route::from(keys.collect::<Vec<_>>()),
            operation,
        }
    };
    let add = |depth: usize, new| {
        let (key, value) = (parts[depth].to_string(), nested(&parts[depth + 1..], new));
        patch(depth, Op::Add { key, value })
    };
    if known == parts.len() {
        vec![patch(known, Op::Replace(new))]
    } else if at.is_null() && known > 0 {
        // An empty "storage:" is not a mapping to which something could be added.
        vec![patch(known, Op::Remove), add(known - 1, new)]
    } else {
        vec![add(known, new)]
    }
}

/// Returns the value nested below these keys.
fn nested(parts: &[&str], value: Value) -> Value {
    parts.iter().rev().fold(value, |value, part| {
        let mut mapping = Mapping::new();
        mapping.insert(Value::String((*part).to_string()), value);
        Value::Mapping(mapping)
    })
}

fn new_value(root: &Value, setting: &Setting) -> Result<Value, String> {
    let Some(key) = &setting.key else {
        return Ok(match setting.suffix.is_empty() {
            true => yaml(&setting.value),
            false => Value::String(format!("{}{}", setting.value, setting.suffix)),
        });
    };
    let value = engine_string::value_text(&setting.value, &setting.suffix)?;
    let mut parts = setting.path.split('.');
    let old = match parts.try_fold(root, |at, part| at.get(part)) {
        None | Some(Value::Null) => "",
        Some(Value::String(text)) => text.as_str(),
        Some(_) => return Err(format!("{} is no text", setting.path)),
    };
    let text = engine_string::set_all(old, &[(key.clone(), value)])?;
    Ok(Value::String(text))
}

/// Returns the place of a path, creating it if it is missing.
fn place<'a>(root: &'a mut Value, path: &str) -> Result<&'a mut Value, String> {
    let mut at = root;
    for part in path.split('.') {
        if at.is_null() {
            *at = Value::Mapping(Mapping::new());
        }
        let Value::Mapping(mapping) = at else {
            return Err(format!("{path} leads into something that has no parts"));
        };
        at = mapping
            .entry(Value::String(part.into()))
            .or_insert(Value::Null);
    }
    Ok(at)
}

fn yaml(value: &KnobValue) -> Value {
    match value {
        KnobValue::Bool(value) => Value::Bool(*value),
        KnobValue::Integer(value) => Value::Number((*value).into()),
        KnobValue::Float(value) => Value::Number((*value).into()),
        KnobValue::Text(text) => Value::String(text.clone()),
    }
}

/// Reads the whole file.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let length = fs::metadata(path)?.len();
    if length > FILE_MAX_BYTES {
        return Err(io::Error::other(format!(
            "{length} bytes are too many for a configuration file"
        )));
    }
    fs::read_to_string(path)
}

/// Replaces the file in one step, keeping owner and mode. A link remains a link.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let before = fs::metadata(&path)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new()
        .prefix(".seekscope-")
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    let ours = file.as_file().metadata()?;
    if (ours.uid(), ours.gid()) != (before.uid(), before.gid()) {
        std::os::unix::fs::fchown(file.as_file(), Some(before.uid()), Some(before.gid()))?;
    }
    // After the owner, since changing that clears bits.
    file.as_file()
        .set_permissions(fs::Permissions::from_mode(before.mode() & 0o7777))?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(path: &str, key: Option<&str>, value: KnobValue) -> Setting {
        Setting {
            path: path.into(),
            key: key.map(String::from),
            suffix: String::new(),
            value,
        }
    }

    #[test]
    fn settings_are_nested_and_the_rest_stays() {
        let text = "# why\nstorage:\n  dbPath: /data # here\n  wiredTiger:\n    engineConfig:\n      \
                    configString: \"eviction=(threads_max=2),log=(zero_fill=true)\"\nnet: {port: 27017}\n";
        let engine = "storage.wiredTiger.engineConfig.configString";
        let settings = [
            setting("storage.syncPeriodSecs", None, KnobValue::Integer(120)),
            setting(engine, Some("eviction.threads_max"), KnobValue::Integer(8)),
            setting(
                "storage.wiredTiger.engineConfig.journalCompressor",
                None,
                KnobValue::Text("none".into()),
            ),
            setting("setParameter.x", None, KnobValue::Text("yes".into())),
        ];
        let edited = edited(text, &settings).unwrap();
        let value: Value = yaml_serde::from_str(&edited).unwrap();
        assert_eq!(value["storage"]["dbPath"], Value::from("/data"));
        assert_eq!(value["storage"]["syncPeriodSecs"], Value::from(120));
        assert_eq!(value["net"]["port"], Value::from(27017));
        assert_eq!(
            value["storage"]["wiredTiger"]["engineConfig"]["configString"],
            Value::from("log=(zero_fill=true),eviction=(threads_max=8)")
        );
        // A text that YAML would take for something else is still a text.
        assert_eq!(value["setParameter"]["x"], Value::from("yes"));
    }

    /// The file of Debian's package.
    const PACKAGED: &str = "\
# mongod.conf

# Where and how to store data.
storage:
  dbPath: /var/lib/mongodb
#  engine:
  wiredTiger:
    engineConfig:
      cacheSizeGB: 4 # of 16

# network interfaces
net:
  port: 27017
  bindIp: 127.0.0.1  # localhost only


#security:

#replication:
setParameter:
";

    #[test]
    fn comments_and_form_stay() {
        let settings = [
            setting(
                "storage.wiredTiger.engineConfig.cacheSizeGB",
                None,
                KnobValue::Float(1.5),
            ),
            setting("storage.syncPeriodSecs", None, KnobValue::Integer(30)),
            setting(
                "operationProfiling.mode",
                None,
                KnobValue::Text("off".into()),
            ),
            setting("setParameter.x", None, KnobValue::Integer(1)),
        ];
        let edited = edited(PACKAGED, &settings).unwrap();
        assert!(edited.contains("cacheSizeGB: 1.5 # of 16\n"), "{edited}");
        for line in PACKAGED.lines().filter(|line| line.contains('#')) {
            let comment = line.split_once('#').unwrap().1;
            assert!(edited.contains(comment), "{comment} is missing:\n{edited}");
        }
        let value: Value = yaml_serde::from_str(&edited).unwrap();
        assert_eq!(value["storage"]["syncPeriodSecs"], Value::from(30));
        assert_eq!(value["operationProfiling"]["mode"], Value::from("off"));
        assert_eq!(value["setParameter"]["x"], Value::from(1));
        assert_eq!(value["net"]["port"], Value::from(27017));
    }

    #[test]
    fn a_form_that_cannot_be_changed_in_place_is_written_anew_and_says_so() {
        let text = "storage: {\n  dbPath: /data, # here\n}\n";
        let settings = [setting(
            "storage.syncPeriodSecs",
            None,
            KnobValue::Integer(9),
        )];
        let edited = edited(text, &settings).unwrap();
        let value: Value = yaml_serde::from_str(&edited).unwrap();
        assert_eq!(value["storage"]["syncPeriodSecs"], Value::from(9));
        assert_eq!(value["storage"]["dbPath"], Value::from("/data"));
        assert!(
            edited.contains("# here") || edited.starts_with(REWRITTEN),
            "{edited}"
        );
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        let settings = [setting("storage.x", None, KnobValue::Integer(1))];
        for text in ["- a\n", "storage: 5\n", "a: [", "text"] {
            assert!(edited(text, &settings).is_err(), "{text}");
        }
        assert_eq!(edited("", &settings).unwrap(), "storage:\n  x: 1\n");
    }

    #[test]
    fn owner_and_mode_stay_and_links_too() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.conf"), folder.path().join("link"));
        fs::write(&file, "x: 1\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let before = fs::metadata(&file).unwrap();
        replace(&link, "x: 2\n").unwrap();
        let after = fs::metadata(&file).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(read(&file).unwrap(), "x: 2\n");
        assert_eq!(
            (before.mode(), before.uid(), before.gid()),
            (after.mode(), after.uid(), after.gid())
        );
    }
}
