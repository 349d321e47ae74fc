//! A server at work ([`ycsb_load`]) while `seekscope doctor` examines it ([`doctor_process`]).

pub mod doctor_process;
pub mod ycsb_load;

pub use doctor_process::{Examined, examine, first_screen};
pub use ycsb_load::{Done, DoneInSecond, YcsbTask, done_between};
