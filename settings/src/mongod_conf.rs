//! `mongod.conf`: YAML whose settings are named by dotted paths.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use seekscope_run::tune::KnobValue;
use yaml_serde::{Mapping, Value};

use crate::engine_string;

const FILE_MAX_BYTES: u64 = 1 << 20;

/// One setting. With a key, the path holds a text of WiredTiger's in which the key is set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    pub(crate) path: String,
    pub(crate) key: Option<String>,
    pub(crate) suffix: String,
    pub(crate) value: KnobValue,
}

/// The file with the settings in it. Comments are lost; everything else means the same.
pub(crate) fn edited(text: &str, settings: &[Setting]) -> Result<String, String> {
    let mut root: Value = yaml_serde::from_str(text).map_err(|error| error.to_string())?;
    if root.is_null() {
        root = Value::Mapping(Mapping::new());
    }
    for setting in settings {
        let place = place(&mut root, &setting.path)?;
        *place = match &setting.key {
            None if setting.suffix.is_empty() => yaml(&setting.value),
            None => Value::String(format!("{}{}", setting.value, setting.suffix)),
            Some(key) => {
                let value = engine_string::value_text(&setting.value, &setting.suffix)?;
                let old = match &*place {
                    Value::Null => "",
                    Value::String(text) => text.as_str(),
                    _ => return Err(format!("{} is no text", setting.path)),
                };
                Value::String(engine_string::set_all(old, &[(key.clone(), value)])?)
            }
        };
    }
    yaml_serde::to_string(&root).map_err(|error| error.to_string())
}

/// Makes the path where it is not there.
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

/// The whole file.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let length = fs::metadata(path)?.len();
    if length > FILE_MAX_BYTES {
        return Err(io::Error::other(format!(
            "{length} bytes are too many for a configuration file"
        )));
    }
    fs::read_to_string(path)
}

/// Replaces the file in one step, with owner and mode as they were. A link stays a link.
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
    // After the owner, who changing clears bits.
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
