use super::*;

const KNOB: &str = r#"
[[knob]]
name = "depth"
type = "integer"
low = 1
high = 64
scale = "log"
default = 8
set = { command = "./set.sh {value}", read = "./get.sh" }
"#;

fn with(change: &str, to: &str) -> String {
    assert!(KNOB.contains(change), "{change}");
    let text = KNOB.replace(change, to);
    KnobFile::parse(&text).unwrap_err().to_string()
}

#[test]
fn a_users_file() {
    let file = KnobFile::parse(KNOB).unwrap();
    let entry = &file.knobs[0];
    assert!(entry.search && entry.why.is_empty());
    assert_eq!(entry.set.in_words(), "./set.sh {value}");
    assert_eq!(KnobFile::parse(&file.to_toml()).unwrap(), file);
    assert_eq!(KnobFile::parse("").unwrap(), KnobFile::default());
}

#[test]
fn mistakes_are_named_with_their_place() {
    let message = with("scale", "scael");
    assert!(
        message.contains("line 7") && message.contains("scael"),
        "{message}"
    );
    assert!(
        with("low = 1", "low = \"1\"")
            .contains("line 2, knob `depth`: `low` and `high` must be whole")
    );
    for (change, to, part) in [
        ("low = 1\n", "", "`low` is missing"),
        ("high = 64", "high = 0", "must be below"),
        ("default = 8", "default = 80", "default is not among"),
        ("\"integer\"", "\"int\"", "unknown variant"),
        (
            "scale = \"log\"",
            "choices = [\"a\", \"b\"]",
            "has no `choices`",
        ),
        (
            "{ command = \"./set.sh {value}\", read = \"./get.sh\" }",
            "{}",
            "takes one of",
        ),
        ("{value}", "8", "must say with {value}"),
        ("{value}", "'{value}'", "without quotes"),
        ("command", "file = \"/etc/passwd\", command", "takes one of"),
        (
            "{ command = \"./set.sh {value}\", read = \"./get.sh\" }",
            "{ file = \"/etc/passwd\" }",
            "not among the files",
        ),
        (
            "{ command = \"./set.sh {value}\", read = \"./get.sh\" }",
            "{ engine = \"a=1,b\" }",
            "words joined by dots",
        ),
        (
            "{ command = \"./set.sh {value}\", read = \"./get.sh\" }",
            "{ parameter = \"x\", read = \"y\" }",
            "has no `read`",
        ),
        (
            "{ command = \"./set.sh {value}\", read = \"./get.sh\" }",
            "{ environment = \"A=B\" }",
            "letters, digits",
        ),
        ("default = 8", "default = 8\nrisk = \"X\"", "[[pinned]]"),
        (
            "default = 8",
            "default = 8\nsince = \"five\"",
            "is no version",
        ),
        (
            "default = 8",
            "default = 8\nsince = \"5.0\"\nuntil = \"4.4\"",
            "no version since",
        ),
    ] {
        let message = with(change, to);
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn twins_and_hostile_choices_are_refused() {
    let twice = KnobFile::parse(&format!("{KNOB}{KNOB}"))
        .unwrap_err()
        .to_string();
    assert!(
        twice.contains("line 11, knob `depth`: the name is taken"),
        "{twice}"
    );
    let hostile = KNOB
        .replace(
            "type = \"integer\"\nlow = 1\nhigh = 64\nscale = \"log\"\ndefault = 8",
            "type = \"categorical\"\nchoices = [\"a\", \"b,log=(enabled=false)\"]\ndefault = \"a\"",
        )
        .replace(
            "{ command = \"./set.sh {value}\", read = \"./get.sh\" }",
            "{ engine = \"x\" }",
        );
    let message = KnobFile::parse(&hostile).unwrap_err().to_string();
    assert!(
        message.contains("cannot stand in a configuration text"),
        "{message}"
    );
}

#[test]
fn names_that_are_near_are_told() {
    let file = crate::Catalogue::of(crate::ServerProgram::Mongod).unwrap();
    let message = |name: &str| file.find(name).unwrap_err().to_string();
    assert!(message("eviction_dirty_triger").contains("did you mean eviction_dirty_trigger"));
    assert!(message("tickets").contains("read_tickets"));
    assert!(message("zzz").contains("known are: "));
    assert!(message("checksum").contains("damaged block"));
}

#[test]
fn a_users_knobs_replace_the_catalogues() {
    let mut file = crate::Catalogue::of(crate::ServerProgram::Mongod).unwrap();
    let own = KNOB.replace("\"depth\"", "\"read_tickets\"");
    file.merge(KnobFile::parse(&own).unwrap());
    assert_eq!(file.find("read_tickets").unwrap().len(), 1);
}

#[test]
fn how_long_a_run_must_be_is_seconds_or_another_knobs() {
    let parsed = |least: &str| {
        let text = format!("{KNOB}at_most_cpus = true\nrun_min = {least}\n");
        let file = KnobFile::parse(&text)?;
        assert_eq!(KnobFile::parse(&file.to_toml()).unwrap(), file);
        assert!(file.knobs[0].at_most_cpus);
        Ok(file.knobs[0].run_min.clone())
    };
    assert_eq!(parsed("{ s = 30 }"), Ok(Some(RunMin::Seconds(30.0))));
    let other = RunMin::Times {
        of: "interval".into(),
        times: 2.0,
        unit_s: 1.0,
    };
    assert_eq!(parsed("{ of = \"interval\", times = 2 }"), Ok(Some(other)));
    for wrong in ["{}", "{ s = 0 }", "{ s = 1, of = \"x\" }", "{ times = 2 }"] {
        let error: KnobFileError = parsed(wrong).unwrap_err();
        assert!(error.to_string().contains("run_min"), "{wrong}: {error}");
    }
}
