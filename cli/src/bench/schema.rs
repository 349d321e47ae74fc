//! `seekscope bench schema`: compares ways of storing the same samples, each on a separate server.

use std::path::Path;

use anyhow::{Context, Result};
use seekscope_run::units::format_bytes;
use seekscope_run::{BenchMeasurement, DeviceFacts, Limitation, SchemaShape, TargetFacts};
use seekscope_server::{CgroupTree, PrivateServer, ProcFs, SlowDisk, SlowDiskSpec, Workspace};
use seekscope_workload::schema::{
    ForeignServer, LabOptions, LabServer, Samples, Variant, experiments, measure, recommendation,
};
use seekscope_workload::{DataSet, OwnedDatabase};

use super::ending::Demands;
use super::private_server;
use super::results::Show;
use super::stage::Stage;
use super::target::Target;
use crate::args::{BUCKET_SAMPLES, EmulatedDisk, SchemaArgs};
use crate::environment::Environment;
use crate::exit::Usage;

/// Name of the data set's entry in the database.
const DATA_SET: &str = "schema lab";
/// Approximate size of a sample stored as a document of its own, with its index entry.
const SAMPLE_BYTES: u64 = 150;
const CACHE_BYTES_MIN: u64 = 32 << 20;

/// Runs the command.
pub async fn run(
    args: &SchemaArgs,
    environment: &Environment,
    arguments: Vec<String>,
) -> Result<()> {
    let lab = Lab::new(args)?;
    let mut stage = Stage::begin(&args.keep, arguments, lab.measurement())?;
    stage.session.document.seed = Some(args.seed);
    let interruption = stage.interruption.clone();
    let worked = interruption.or(lab.work(&mut stage, environment)).await;
    stage.end(worked, &Demands::default(), &args.keep.output, Show::Tables)
}

/// What to measure.
struct Lab<'a> {
    args: &'a SchemaArgs,
    samples: Samples,
    variants: Vec<Variant>,
    options: LabOptions,
}

impl<'a> Lab<'a> {
    fn new(args: &'a SchemaArgs) -> Result<Self> {
        let samples = Samples::new(args.samples());
        let mut variants: Vec<Variant> = args.shapes.iter().map(|way| way.0).collect();
        if variants.is_empty() {
            variants = Variant::all(&samples, BUCKET_SAMPLES);
        }
        if let Some(twice) = (1..variants.len()).find(|&i| variants[..i].contains(&variants[i])) {
            return Err(Usage(format!("--shapes names {} twice", variants[twice].name())).into());
        }
        Ok(Self {
            args,
            samples,
            variants,
            options: LabOptions {
                database: args.target.database.clone(),
                batch_samples: args.batch,
                queries: args.queries,
                ..LabOptions::default()
            },
        })
    }

    fn measurement(&self) -> BenchMeasurement {
        let samples = self.samples.options();
        let settings = [
            ("series", self.samples.series().to_string()),
            ("days", samples.days.to_string()),
            ("samples per day", samples.per_day.to_string()),
            ("missing", samples.missing_share.to_string()),
            ("late", samples.late_share.to_string()),
            ("values", format!("{:?}", samples.values).to_lowercase()),
            ("batch", self.options.batch_samples.to_string()),
            ("queries", self.options.queries.to_string()),
        ];
        let mut settings: std::collections::BTreeMap<String, String> =
            settings.map(|(name, value)| (name.into(), value)).into();
        if self.args.target.uri.is_none() {
            settings.insert("cache".into(), format_bytes(self.cache_bytes()));
        }
        for (name, value) in &self.args.target.server_setting {
            settings.insert(format!("server {name}"), value.clone());
        }
        BenchMeasurement {
            workload: "schema".into(),
            settings,
            database: self.options.database.clone(),
            ..BenchMeasurement::default()
        }
    }

    fn sample_count(&self) -> u64 {
        u64::from(self.samples.series()) * self.samples.slots()
    }

    /// Returns the size of the server's cache. A cache that holds everything would hide what grows.
    fn cache_bytes(&self) -> u64 {
        let quarter = self.sample_count() * SAMPLE_BYTES / 4;
        self.args
            .target
            .cache
            .unwrap_or(quarter.max(CACHE_BYTES_MIN))
    }

    async fn work(&self, stage: &mut Stage, environment: &Environment) -> Result<()> {
        match self.args.target.uri.as_deref() {
            None => {
                let mut lab_server = self.private_lab_server(stage, environment).await?;
                self.measure_all(stage, &mut lab_server).await?;
                if self.args.target.keep
                    && let Some(kept) = lab_server.keep()
                {
                    stage
                        .progress
                        .say(format!("The last way's data is kept in {}", kept.display()));
                }
            }
            Some(uri) => {
                let target = Target::connect(uri, "", self.args.target.pid).await?;
                stage.note_target(&target)?;
                let server = target.server()?.clone();
                let mut owned = OwnedDatabase::open(&server, &self.options.database).await?;
                if owned.data_set(DATA_SET).is_some() {
                    owned.drop_data_set(DATA_SET).await?;
                }
                owned.record(self.data_set()).await?;
                refuse_prepared(&mut owned).await?;
                let pid = target.facts.pid;
                let mut lab_server = LabServer::Foreign(ForeignServer { server, pid });
                let measured = self.measure_all(stage, &mut lab_server).await;
                owned.drop_data_set(DATA_SET).await?;
                measured?;
            }
        }
        Ok(())
    }

    fn data_set(&self) -> DataSet {
        let collections = self.variants.iter().map(Variant::collection).collect();
        DataSet::new(
            DATA_SET,
            collections,
            "",
            self.sample_count(),
            self.args.seed,
        )
    }

    async fn private_lab_server(
        &self,
        stage: &mut Stage,
        environment: &Environment,
    ) -> Result<LabServer> {
        let parent = stage
            .session
            .data_folder(self.args.target.data_dir.as_deref())?;
        let device = DeviceFacts::of_path(Path::new("/"), &parent)
            .with_context(|| format!("cannot look at {}", parent.display()))?;
        let mut workspace = Workspace::create(&parent, &environment.lease_folder)?;
        let slow_disk = match self.args.disk {
            Some(EmulatedDisk::Hdd) => Some(SlowDisk::create(
                &CgroupTree::discover(Path::new("/proc")),
                &SlowDiskSpec::hdd(),
                &device,
                workspace.unique_name(),
            )?),
            Some(EmulatedDisk::None) | None => None,
        };
        workspace.record_cgroup(slow_disk.as_ref().map(SlowDisk::group))?;
        let mut options = private_server::options(&self.args.target, &[], environment, &workspace)?;
        options.cache_bytes = self.cache_bytes();
        stage.session.document.device = Some(device);
        let mut lab_server =
            LabServer::Private(Box::new(PrivateServer::new(workspace, options, slow_disk)));
        let server = lab_server.fresh(&self.options.database, "none").await?;
        let facts = server.facts(&ProcFs::host()).await;
        stage.session.document.target = Some(TargetFacts {
            local: true,
            ..facts.target
        });
        Ok(lab_server)
    }

    async fn measure_all(&self, stage: &mut Stage, lab_server: &mut LabServer) -> Result<()> {
        let of = self.variants.len();
        for (number, variant) in (1..).zip(&self.variants) {
            let text = format!("{} ({number} of {of})", title(variant));
            let shapes = {
                let step = stage.progress.counted(text, self.sample_count());
                measure(lab_server, &self.samples, variant, &self.options, &|done| {
                    step.at(done)
                })
                .await
            };
            let shapes = shapes.with_context(|| title(variant))?;
            for limitation in shapes.iter().flat_map(|shape| shape.limitations.clone()) {
                stage.limit(limitation);
            }
            let measurement = stage.measurement();
            measurement.shapes.extend(shapes);
            measurement.experiments = experiments(&measurement.shapes);
            measurement.recommendation = recommendation(&measurement.shapes);
            stage.session.save()?;
        }
        if lab_server.is_private()
            && let Some(limitation) =
                fits_the_cache(&stage.measurement().shapes, self.cache_bytes())
        {
            stage.limit(limitation);
        }
        Ok(())
    }
}

/// Refuses collections prepared by the user: the lab creates each collection and drops it.
async fn refuse_prepared(owned: &mut OwnedDatabase) -> Result<()> {
    let lab = owned.data_set(DATA_SET);
    let Some(name) = lab.and_then(|lab| lab.prepared.first().cloned()) else {
        return Ok(());
    };
    owned.drop_data_set(DATA_SET).await?;
    Err(Usage(format!(
        "{}.{name} exists already, and the lab makes and drops its collections itself: drop it, or name \
         another database with --database",
        owned.name()
    ))
    .into())
}

fn title(variant: &Variant) -> String {
    let filled = if variant.preallocated {
        ", pre-allocated"
    } else {
        ""
    };
    format!("{}{filled}, {}", variant.name(), variant.index_json())
}

/// Reports data that fits in the server's cache: it does not show how inserts fare once it no longer does.
fn fits_the_cache(shapes: &[SchemaShape], cache_bytes: u64) -> Option<Limitation> {
    let largest = shapes
        .iter()
        .filter_map(|shape| shape.storage.as_ref()?.directory_bytes)
        .max()?;
    (largest < cache_bytes).then(|| Limitation {
        what: "how inserts slow down when the data outgrow the server's cache was not seen".into(),
        why: format!(
            "the cache has {}, the largest way of storing takes {}",
            format_bytes(cache_bytes),
            format_bytes(largest)
        ),
        remedy: "more --series or --years, or a smaller --cache".into(),
    })
}

#[cfg(test)]
mod tests {
    use seekscope_run::StorageFacts;

    use super::*;

    #[test]
    fn a_cache_that_holds_everything_is_said() {
        let mut shape = SchemaShape::default();
        assert_eq!(fits_the_cache(&[shape.clone()], 100), None);
        shape.storage = Some(StorageFacts {
            directory_bytes: Some(50),
            ..StorageFacts::default()
        });
        assert!(
            fits_the_cache(&[shape.clone()], 100)
                .unwrap()
                .why
                .contains("50 B")
        );
        assert_eq!(fits_the_cache(&[shape], 50), None);
    }
}
