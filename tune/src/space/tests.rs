use proptest::prelude::*;

use super::*;

fn text(choices: &[&str]) -> Range {
    Range::Categorical {
        choices: choices.iter().map(|c| (*c).to_owned()).collect(),
    }
}

fn integer(low: i64, high: i64, scale: Scale) -> Range {
    Range::Integer { low, high, scale }
}

fn float(low: f64, high: f64) -> Range {
    Range::Float {
        low,
        high,
        scale: Scale::Linear,
    }
}

/// Every kind of knob, a share, a condition, special values and a limit.
fn everything() -> Space {
    let share = Knob {
        share_of: Some("trigger".into()),
        ..Knob::new("target", integer(5, 95, Scale::Linear), Value::Integer(5))
    };
    let special = Knob {
        special: vec![0.0],
        ..Knob::new("io_mb", integer(10, 1000, Scale::Log), Value::Integer(0))
    };
    let conditional = Knob {
        when: Some(Condition {
            knob: "algorithm".into(),
            is: vec![Value::Text("fixed".into())],
        }),
        ..Knob::new("tickets", integer(4, 512, Scale::Log), Value::Integer(128))
    };
    let pages = Range::Ordinal {
        values: vec![4.0, 8.0, 16.0, 32.0],
    };
    let cache = Range::Float {
        low: 0.25,
        high: 24.0,
        scale: Scale::Log,
    };
    let knobs = vec![
        Knob::new("cache_gb", cache, Value::Float(7.5)),
        Knob::new("trigger", integer(2, 80, Scale::Linear), Value::Integer(20)),
        share,
        special,
        Knob::new(
            "algorithm",
            text(&["probing", "fixed"]),
            Value::Text("probing".into()),
        ),
        conditional,
        Knob::new("page_kb", pages, Value::Integer(32)),
        Knob::new("mmap", Range::Bool, Value::Bool(true)),
    ];
    let limit = Limit {
        name: "memory".into(),
        weights: [("cache_gb".to_owned(), 1.0)].into(),
        at_most: 16.0,
    };
    Space::new(knobs, vec![limit]).unwrap()
}

fn with(pairs: &[(&str, Value)]) -> Configuration {
    Configuration(
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
    )
}

proptest! {
    #[test]
    fn every_point_is_a_configuration_and_leads_back(point in prop::collection::vec(-0.5f64..1.5, 0..10)) {
        let space = everything();
        let levels = space.levels_at(&point);
        if space.within_limits(&levels) {
            let configuration = space.configuration(&levels);
            let again = space.levels_of(&configuration).unwrap();
            prop_assert_eq!(&space.configuration(&again), &configuration);
            prop_assert_eq!(space.complete(&configuration).unwrap().fingerprint(), configuration.fingerprint());
        }
        let (trigger, target) = (levels[1], levels[2]);
        prop_assert!(target <= 0.95 * trigger && target.fract() == 0.0);
        prop_assert!(space.featurise(&levels).iter().all(|f| f.is_finite()));
        let coordinates = space.point_of(&levels);
        prop_assert!(coordinates.iter().all(|c| (0.0..=1.0).contains(c)));
        let back = space.levels_at(&coordinates);
        for (knob, (a, b)) in space.knobs().iter().zip(levels.iter().zip(&back)) {
            prop_assert!((a - b).abs() <= 1e-3 * a.abs(), "{}: {} {}", knob.name, a, b);
        }
    }

    #[test]
    fn hostile_definitions_are_refused_or_work(low: f64, high: f64, default: f64, special in prop::collection::vec(any::<f64>(), 0..3), log: bool) {
        let scale = if log { Scale::Log } else { Scale::Linear };
        let knob = Knob { special, ..Knob::new("x", Range::Float { low, high, scale }, Value::Float(default)) };
        if let Ok(space) = Space::new(vec![knob], Vec::new()) {
            for at in [0.0, 0.3, 1.0, f64::NAN] {
                let levels = space.levels_at(&[at]);
                prop_assert!(space.complete(&space.configuration(&levels)).is_ok(), "{:?}", levels);
            }
        }
    }

    #[test]
    fn hostile_whole_numbers_too(low: i64, high: i64, default: i64) {
        if let Ok(space) = Space::new(vec![Knob::new("x", integer(low, high, Scale::Linear), Value::Integer(default))], Vec::new()) {
            let levels = space.levels_at(&[0.7]);
            prop_assert!(space.complete(&space.configuration(&levels)).is_ok());
        }
    }
}

#[test]
fn what_does_not_reach_the_server_is_equal() {
    let space = everything();
    let probing = space
        .complete(&with(&[("tickets", Value::Integer(64))]))
        .unwrap();
    assert_eq!(probing, space.default_configuration());
    assert!(!probing.0.contains_key("tickets"));
    let fixed = [
        ("algorithm", Value::Text("fixed".into())),
        ("tickets", Value::Integer(64)),
    ];
    let fixed = space.complete(&with(&fixed)).unwrap();
    assert_eq!(fixed.0["tickets"], Value::Integer(64));
    assert_ne!(fixed.fingerprint(), probing.fingerprint());
}

#[test]
fn a_default_share_stays_below_a_smaller_base() {
    let space = everything();
    let small = space
        .complete(&with(&[("trigger", Value::Integer(4))]))
        .unwrap();
    assert_eq!(small.0["target"], Value::Integer(3));
}

#[test]
fn what_is_wrong_is_named() {
    let space = everything();
    let refused = |pairs: &[(&str, Value)]| space.complete(&with(pairs)).unwrap_err().to_string();
    assert!(refused(&[("cache", Value::Float(1.0))]).contains("known are: cache_gb, trigger"));
    assert!(refused(&[("trigger", Value::Integer(81))]).contains("it takes 2 to 80"));
    assert!(refused(&[("trigger", Value::Float(7.5))]).contains("cannot be 7.5"));
    assert!(refused(&[("io_mb", Value::Integer(5))]).contains("or 0"));
    assert!(refused(&[("mmap", Value::Integer(1))]).contains("true, false"));
    assert!(refused(&[("page_kb", Value::Integer(5))]).contains("cannot be 5"));
    assert!(refused(&[("cache_gb", Value::Float(20.0))]).contains("the limit `memory`"));
    assert!(refused(&[("cache_gb", Value::Float(f64::NAN))]).contains("cannot be NaN"));
}

#[test]
fn impossible_knobs_are_refused() {
    let refused = |knob: Knob| Space::new(vec![knob], Vec::new()).unwrap_err().to_string();
    let number = || Knob::new("x", float(0.0, 1.0), Value::Float(0.5));
    let why = [
        (
            Knob::new("", float(0.0, 1.0), Value::Float(0.5)),
            "its name is empty",
        ),
        (
            Knob::new("x", float(1.0, 1.0), Value::Float(1.0)),
            "must be below",
        ),
        (
            Knob::new("x", integer(0, 9, Scale::Log), Value::Integer(1)),
            "begin above zero",
        ),
        (
            Knob::new("x", float(0.0, 1.0), Value::Float(2.0)),
            "its default is not among",
        ),
        (
            Knob::new("x", text(&["a", "a"]), Value::Text("a".into())),
            "differ",
        ),
        (
            Knob::new("x", text(&["a"]), Value::Text("a".into())),
            "two values",
        ),
        (
            Knob {
                share_of: Some("y".into()),
                ..number()
            },
            "`y`",
        ),
        (
            Knob {
                special: vec![f64::INFINITY],
                ..number()
            },
            "finite",
        ),
    ];
    for (knob, part) in why {
        let message = refused(knob);
        assert!(message.contains(part), "{message}");
    }
    let when = Condition {
        knob: "x".into(),
        is: vec![Value::Text("b".into())],
    };
    let knobs = vec![
        number(),
        Knob {
            name: "y".into(),
            when: Some(when),
            ..number()
        },
    ];
    assert!(Space::new(knobs, Vec::new()).is_err());
}

#[test]
fn special_values_are_drawn_and_are_nowhere_in_the_range() {
    let space = everything();
    let mut point = vec![0.5; 8];
    point[3] = 0.05;
    let levels = space.levels_at(&point);
    assert_eq!(levels[3], 0.0);
    let kinds = space.features();
    let place = kinds.iter().position(|(_, knob)| *knob == 3).unwrap();
    assert_eq!(&space.featurise(&levels)[place..place + 2], &[0.5, 1.0]);
}

#[test]
fn a_space_survives_being_written_down() {
    let space = everything();
    let json = serde_json::to_string(&space).unwrap();
    assert_eq!(serde_json::from_str::<Space>(&json).unwrap(), space);
    assert!(
        json.contains(r#""type":"integer","low":5,"high":95"#),
        "{json}"
    );
    let twice = json.replace(r#""name":"mmap""#, r#""name":"trigger""#);
    let message = serde_json::from_str::<Space>(&twice)
        .unwrap_err()
        .to_string();
    assert!(message.contains("taken"), "{message}");
}
