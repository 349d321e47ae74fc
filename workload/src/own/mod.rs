//! Workloads that users write, as TOML.
