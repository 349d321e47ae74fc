//! Converts what was written to what runs: references resolved, sizes bounded, texts encoded.

mod changes;
mod fields;
mod holes;
mod indexes;
mod records;
mod role;
mod step;
#[cfg(test)]
mod tests;
mod workload_plan;

pub(crate) use holes::bson_of_json;
pub(crate) use records::Records;
pub use records::Slice;
pub(crate) use role::Mix;
pub use role::{RoleEnd, RolePlan};
pub(crate) use step::{BATCH_BYTES_MAX, Step, StepAction, TransactionPlan};
pub use workload_plan::{CollectionPlan, PhasePlan, Plan, PlanOptions};
