//! Better settings, found quickly and proven honestly; pure logic, no server.

pub mod duel;
mod gp;
pub mod optimiser;
pub mod space;
pub mod synthetic;
