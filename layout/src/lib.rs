//! How the leaf pages of a database's files lie on disk: reading data directories without disturbing them,
//! measuring the order, predicting what a scan costs.

pub mod decay;
pub mod order;
pub mod scan_prediction;
pub mod strip;
pub mod typical_disks;
