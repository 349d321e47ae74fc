//! YCSB: its properties, data and workloads A to F.
