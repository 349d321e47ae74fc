//! Defines the settings of a run of sysbench-mongodb, with the defaults of its eras.

/// The defaults that a result uses: they changed over the years, so results differ for that reason alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Era {
    /// Defaults of papers and blogs: 16 collections of ten million documents.
    Y2013To2015,
    /// Ten collections of a million.
    Y2021To2024,
    /// One collection of a million, since September 2024.
    #[default]
    Since202409,
}

impl Era {
    pub const ALL: [Self; 3] = [Self::Y2013To2015, Self::Y2021To2024, Self::Since202409];

    /// Returns the name used on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Y2013To2015 => "2013-2015",
            Self::Y2021To2024 => "2021-2024",
            Self::Since202409 => "2024-09",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|era| era.name() == name)
    }

    /// Returns the settings of that era, including those that all eras share.
    pub fn defaults(self) -> SysbenchSettings {
        let (collections, documents, loaders, in_flight, database, read_preference) = match self {
            Self::Y2013To2015 => (16, 10_000_000, 8, 64, "sbtest", Some("primary")),
            Self::Y2021To2024 => {
                let secondary = Some("secondaryPreferred");
                (10, 1_000_000, 10, 32, "sbtest10by1mm", secondary)
            }
            Self::Since202409 => (1, 1_000_000, 10, 10, "sbtest10by1mm", None),
        };
        SysbenchSettings {
            era: self,
            collections,
            documents,
            loaders,
            in_flight,
            database,
            read_preference,
            batch: 1_000,
            run_s: 600,
            seed: 1,
            exact_original: false,
            steps: StepCounts::default(),
            range: 100,
            ids: Ids::Uniform,
            is_transaction: false,
        }
    }
}

/// How `_id`s are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ids {
    /// Uniform, like the original.
    Uniform,
    /// The same as in the SQL sysbench: the lowest ids are the hottest; its default exponent is 0.8.
    Zipfian { theta: f64 },
    /// The same as in the SQL sysbench: `h` of the ids get 1 - `h` of the draws; its default is 0.2.
    Pareto { h: f64 },
}

/// Number of times each step is done in a transaction; 0 omits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepCounts {
    pub point_selects: u16,
    pub simple_ranges: u16,
    pub sum_ranges: u16,
    pub order_ranges: u16,
    pub distinct_ranges: u16,
    pub index_updates: u16,
    pub non_index_updates: u16,
    /// Number of pairs of a delete and an insert.
    pub replacements: u16,
}

impl Default for StepCounts {
    fn default() -> Self {
        Self {
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            index_updates: 1,
            non_index_updates: 1,
            replacements: 1,
        }
    }
}

impl StepCounts {
    /// Returns the counts without steps that write.
    pub fn read_only(self) -> Self {
        Self {
            index_updates: 0,
            non_index_updates: 0,
            replacements: 0,
            ..self
        }
    }
}

/// Everything that determines data and transactions, and settings for the caller's execution.
#[derive(Debug, Clone, PartialEq)]
pub struct SysbenchSettings {
    pub era: Era,
    /// Number of collections: sbtest1, sbtest2, ….
    pub collections: u32,
    /// Documents in each collection; `_id`s are 1 to this.
    pub documents: u32,
    /// Operations in flight during the load, and during the run.
    pub loaders: usize,
    pub in_flight: usize,
    /// The era's database; seekscope uses its own by default.
    pub database: &'static str,
    pub read_preference: Option<&'static str>,
    /// Documents per insert.
    pub batch: u32,
    /// Length of the run, seconds.
    pub run_s: u64,
    /// Virtual user n draws from seed + n. The original uses the wall clock's seconds by default.
    pub seed: i64,
    /// Omits what the original omits, that is, documents of the last, partial batch; and loads each
    /// collection with one virtual user.
    pub exact_original: bool,
    pub steps: StepCounts,
    /// Number of documents in a range.
    pub range: u32,
    pub ids: Ids,
    /// Wraps the commands in a multi-document transaction.
    pub is_transaction: bool,
}

/// An error in the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("sysbench: {0}")]
pub struct SettingsError(&'static str);

impl SysbenchSettings {
    /// Checks that the settings are in sensible ranges.
    pub fn check(&self) -> Result<(), SettingsError> {
        let skew_is_good = match self.ids {
            Ids::Uniform => true,
            Ids::Zipfian { theta } => theta.is_finite() && theta >= 0.0,
            Ids::Pareto { h } => h > 0.0 && h < 1.0,
        };
        let wrong = [
            (
                !(1..=100_000).contains(&self.collections),
                "collections must be 1 to 100000",
            ),
            (
                !(1..=2_147_483_647).contains(&self.documents),
                "documents must be 1 to 2147483647",
            ),
            (
                !(1..=100_000).contains(&self.batch),
                "an insert must have 1 to 100000 documents",
            ),
            (
                !(1..=100_000_000).contains(&self.range),
                "a range must have 1 to 100000000 documents",
            ),
            (
                !skew_is_good,
                "zipfian IDs need an exponent of at least 0, and pareto IDs need a share \
                 between 0 and 1",
            ),
            (
                self.exact_original && self.documents < self.batch,
                "the original loads only whole batches, and there are fewer documents \
                 than one batch has",
            ),
            (
                super::steps::steps_of(&self.steps).is_empty(),
                "all steps are excluded",
            ),
        ];
        match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, why)) => Err(SettingsError(why)),
            None => Ok(()),
        }
    }

    /// Returns the number of documents that the load writes into each collection.
    pub fn loaded(&self) -> u32 {
        if self.exact_original {
            self.documents / self.batch * self.batch
        } else {
            self.documents
        }
    }

    /// Returns every setting by name, for the run's record.
    pub fn resolved(&self) -> Vec<(&'static str, String)> {
        let StepCounts {
            point_selects,
            simple_ranges,
            sum_ranges,
            order_ranges,
            distinct_ranges,
            index_updates,
            non_index_updates,
            replacements,
        } = self.steps;
        vec![
            ("era", self.era.name().into()),
            ("collections", self.collections.to_string()),
            ("documents", self.documents.to_string()),
            ("batch", self.batch.to_string()),
            ("seed", self.seed.to_string()),
            ("exact-original", self.exact_original.to_string()),
            ("point-selects", point_selects.to_string()),
            ("simple-ranges", simple_ranges.to_string()),
            ("sum-ranges", sum_ranges.to_string()),
            ("order-ranges", order_ranges.to_string()),
            ("distinct-ranges", distinct_ranges.to_string()),
            ("index-updates", index_updates.to_string()),
            ("non-index-updates", non_index_updates.to_string()),
            ("replacements", replacements.to_string()),
            ("range", self.range.to_string()),
            ("ids", format!("{:?}", self.ids).to_lowercase()),
            ("transaction", self.is_transaction.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eras_have_their_defaults() {
        for era in Era::ALL {
            assert_eq!(Era::from_name(era.name()), Some(era));
            assert_eq!(era.defaults().check(), Ok(()));
        }
        let papers = Era::Y2013To2015.defaults();
        assert_eq!((papers.collections, papers.documents), (16, 10_000_000));
        assert_eq!(Era::from_name("2020"), None);
    }

    #[test]
    fn senseless_settings_are_refused() {
        let good = Era::default().defaults();
        for bad in [
            SysbenchSettings {
                collections: 0,
                ..good.clone()
            },
            SysbenchSettings {
                documents: 0,
                ..good.clone()
            },
            SysbenchSettings {
                documents: u32::MAX,
                ..good.clone()
            },
            SysbenchSettings {
                batch: 0,
                ..good.clone()
            },
            SysbenchSettings {
                ids: Ids::Zipfian { theta: f64::NAN },
                ..good.clone()
            },
            SysbenchSettings {
                ids: Ids::Pareto { h: 1.0 },
                ..good.clone()
            },
            SysbenchSettings {
                documents: 5,
                exact_original: true,
                ..good.clone()
            },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
