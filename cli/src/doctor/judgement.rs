//! Judges findings: against an earlier run's, and against limits that the user set.

use std::path::Path;

use anyhow::Result;
use seekscope_doctor::thresholds::{Threshold, breached};
use seekscope_doctor::{Diagnosis, since};
use seekscope_run::{EarlierRun, RunDirectory, RunDocument};

use super::conclusion::Conclusion;
use crate::args::JudgeArgs;
use crate::exit::{ThresholdMissed, Usage};

/// An earlier run, with the conclusions of today's detectors.
pub struct Earlier {
    name: String,
    document: RunDocument,
    diagnosis: Diagnosis,
}

impl Earlier {
    /// Reads the run; writes nothing there.
    pub fn load(run: &Path) -> Result<Self> {
        let (directory, mut document) = RunDirectory::open(run)?;
        if document.examination.is_none() {
            let why = format!(
                "{} is not a run of `seekscope doctor` on a server",
                run.display()
            );
            return Err(Usage(why).into());
        }
        let conclusion = Conclusion::of(&directory, &mut document)?;
        let diagnosis = conclusion.diagnosis().clone();
        Ok(Self::of(directory.path(), document, diagnosis))
    }

    /// Makes one from a run and its conclusions.
    pub fn of(run: &Path, document: RunDocument, diagnosis: Diagnosis) -> Self {
        let name = run.file_name().unwrap_or_default();
        Self {
            name: name.to_string_lossy().into_owned(),
            document,
            diagnosis,
        }
    }

    /// Returns what changed since.
    pub fn compare(&self, document: &RunDocument, diagnosis: &Diagnosis) -> EarlierRun {
        EarlierRun {
            run: self.name.clone(),
            started_realtime_ns: self.document.started.realtime_ns,
            other_server: since::other_server(&self.document, document),
            changes: since::compare(
                since::Examined {
                    document: &self.document,
                    diagnosis: &self.diagnosis,
                },
                since::Examined {
                    document,
                    diagnosis,
                },
            ),
        }
    }
}

/// The user's criteria, checked before anything is measured.
pub struct Judgement {
    since: Option<Earlier>,
    limits: Vec<Threshold>,
}

impl Judgement {
    /// Reads the earlier run and the limits.
    pub fn new(args: &JudgeArgs) -> Result<Self> {
        let limits = args.fail_on.iter().map(|text| Threshold::parse(text));
        let limits = limits.collect::<Result<_, _>>();
        Ok(Self {
            limits: limits.map_err(|error| Usage(format!("--fail-on: {error}")))?,
            since: args.since.as_deref().map(Earlier::load).transpose()?,
        })
    }

    pub fn since(&self) -> Option<&Earlier> {
        self.since.as_ref()
    }

    /// Returns whether any limit was set.
    pub fn has_limits(&self) -> bool {
        !self.limits.is_empty()
    }

    /// Returns an error with its own exit code if a limit was breached.
    pub fn judge(&self, diagnosis: &Diagnosis) -> Result<()> {
        let breaches = breached(&self.limits, diagnosis);
        match breaches.is_empty() {
            true => Ok(()),
            false => Err(ThresholdMissed(breaches.join("; ")).into()),
        }
    }
}
