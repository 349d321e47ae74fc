//! How the leaf pages of a database lie on disk: reading data directories without disturbing them,
//! measuring the order, predicting what a scan costs.
