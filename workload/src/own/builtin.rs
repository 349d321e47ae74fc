//! Workloads that come with seekscope.
