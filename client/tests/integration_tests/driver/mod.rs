//! The official driver behind the trait of clients.

mod engine;
mod fixture;
mod operations;
mod refusals;
