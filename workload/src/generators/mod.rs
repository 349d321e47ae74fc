//! Random draws that workloads are made of: hashes, random numbers, key choosers, values.
