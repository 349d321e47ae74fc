//! Schema labs: the same samples stored in several ways, and what each costs.
