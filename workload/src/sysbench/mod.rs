//! sysbench-mongodb: its data and its transaction.
