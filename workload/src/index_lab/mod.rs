//! Index builds on existing data, with and without other load.
