//! Contains the workloads that come with seekscope, as a starting point for users' own.

/// A workload's name and text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! builtins {
    ($($name:literal),*) => {
        &[$(Builtin { name: $name, text: include_str!(concat!("builtin/", $name, ".toml")) }),*]
    };
}

/// The built-in workloads, in the order in which they are listed.
pub const BUILTINS: &[Builtin] = builtins![
    "ycsb-a",
    "ycsb-b",
    "ycsb-c",
    "ycsb-d",
    "ycsb-e",
    "ycsb-f",
    "sysbench",
    "metrics",
    "index-build"
];

/// Returns the built-in workload with that name.
pub fn builtin(name: &str) -> Option<Builtin> {
    BUILTINS
        .iter()
        .copied()
        .find(|builtin| builtin.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own::{Plan, PlanOptions, Source};

    #[test]
    fn every_builtin_can_be_read_and_is_called_what_it_says() {
        for found in BUILTINS {
            let source = Source {
                file: found.name,
                text: found.text,
            };
            let plan = Plan::parse(source, PlanOptions::default())
                .unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(plan.name, found.name);
            assert!(!plan.phases.is_empty() && !plan.description.is_empty());
            assert_eq!(builtin(found.name), Some(*found));
        }
    }
}
