//! A server at work ([`ycsb_load`]) while `seekscope doctor` examines it, or `advise` watches it ([`doctor_process`]).

pub mod doctor_process;
pub mod ycsb_load;

pub use doctor_process::{Examined, advise, examine, first_screen, watch_queries};
pub use ycsb_load::{Done, DoneInSecond, YcsbTask, done_between};
