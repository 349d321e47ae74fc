//! The device model's prediction for the accesses that are played.

use std::path::Path;

use anyhow::Result;
use schemars::JsonSchema;
use seekscope_disk::model::{PredictOptions, predict, without_think_time};
use seekscope_disk::replay::Plan;
use seekscope_run::units::whole;
use seekscope_run::{DeviceModel, HostFacts};
use serde::{Deserialize, Serialize};

use crate::disk::load_model;

/// The device model's prediction for the accesses that are played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predicted {
    /// The run that holds the model.
    pub run: String,
    /// The disk that the model describes.
    pub disk: String,
    /// Largest relative deviation of a measured read size from the model's line.
    #[schemars(range(min = 0))]
    pub fit_error: f64,
    /// Predicted time with the recorded time between calls.
    pub as_recorded_ns: u64,
    /// Predicted time without any time between calls.
    pub without_think_time_ns: u64,
    /// Predicted time at the speed of the replay, to be compared with its elapsed time.
    pub at_this_speed_ns: u64,
    /// Bytes requested from the device, read-ahead included.
    pub device_bytes: u64,
    /// What the prediction leaves out, in sentences for people.
    pub not_modelled: Vec<String>,
}

/// A loaded model.
pub struct Predictor {
    run: String,
    model: DeviceModel,
    memory_bytes: u64,
}

impl Predictor {
    /// Opens a survey's run.
    pub fn load(run: &Path) -> Result<Self> {
        let (model, _, document) = load_model(run)?;
        Ok(Self {
            run: run.display().to_string(),
            model,
            memory_bytes: document.host.map_or(8 << 30, |host| host.memory_bytes),
        })
    }

    /// Predicts a plan on a cold target of `target_bytes`. `speed` is that of the replay.
    pub fn predict(&self, plan: &Plan, target_bytes: u64, speed: Option<f64>) -> Predicted {
        let mut options = PredictOptions::with_memory(self.memory_bytes);
        // Half of the measured host's memory, as in `disk predict`.
        options.cache_bytes = self.memory_bytes / 2;
        options.idle_is_paged_out = HostFacts::pages_out_idle_memory(Path::new("/"));
        let mut accesses = plan.accesses();
        let files = accesses.iter().map(|access| access.file);
        options.file_bytes = files.map(|file| (file, target_bytes)).collect();
        let as_recorded = predict(&self.model, &accesses, &options);
        let other_speed = speed.filter(|speed| *speed != 1.0).map(|speed| {
            let mut scaled = accesses.clone();
            for access in &mut scaled {
                access.think_ns = scaled_ns(access.think_ns, speed);
            }
            predict(&self.model, &scaled, &options).elapsed_ns
        });
        without_think_time(&mut accesses);
        let disk_alone = predict(&self.model, &accesses, &options);
        let at_this_speed_ns = match (speed, other_speed) {
            (None, _) => disk_alone.elapsed_ns,
            (Some(_), None) => as_recorded.elapsed_ns,
            (Some(_), Some(elapsed_ns)) => elapsed_ns,
        };
        Predicted {
            run: self.run.clone(),
            disk: self.model.disk.clone(),
            fit_error: self.model.fit_error,
            as_recorded_ns: as_recorded.elapsed_ns,
            without_think_time_ns: disk_alone.elapsed_ns,
            at_this_speed_ns,
            device_bytes: as_recorded.device_bytes,
            not_modelled: as_recorded.unmodelled,
        }
    }
}

fn scaled_ns(ns: u64, speed: f64) -> u64 {
    whole(ns as f64 / speed)
}
