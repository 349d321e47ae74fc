//! The official driver behind the trait of clients.

mod fixture;
mod operations;
mod refusals;
