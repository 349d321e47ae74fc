//! Benchmarks on Cassandra.
