//! Lists the known properties, and which of them seekscope supports.

use super::Properties;

/// How seekscope treats a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// Supported.
    Supported,
    /// Known to YCSB, but without effect here; the text says why or what to use instead.
    Unsupported(&'static str),
    /// Not known.
    Unknown,
}

/// Returns how a property with this name is treated.
pub fn treatment(name: &str) -> Treatment {
    if SUPPORTED.contains(&name) {
        return Treatment::Supported;
    }
    UNSUPPORTED
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(Treatment::Unknown, |(_, why)| Treatment::Unsupported(why))
}

/// Returns messages about properties that have no effect: `(name, why)`.
pub fn without_effect(properties: &Properties) -> Vec<(String, &'static str)> {
    let told = |(name, _): (&str, &str)| match treatment(name) {
        Treatment::Supported => None,
        Treatment::Unsupported(why) => Some((name.to_owned(), why)),
        Treatment::Unknown => Some((
            name.to_owned(),
            "neither YCSB nor seekscope has this property",
        )),
    };
    properties.iter().filter_map(told).collect()
}

const SUPPORTED: [&str; 51] = [
    "workload",
    "recordcount",
    "operationcount",
    "insertstart",
    "insertcount",
    "threadcount",
    "target",
    "maxexecutiontime",
    "table",
    "fieldcount",
    "fieldnameprefix",
    "fieldlength",
    "minfieldlength",
    "fieldlengthdistribution",
    "fieldlengthhistogram",
    "readallfields",
    "readallfieldsbyname",
    "writeallfields",
    "dataintegrity",
    "readproportion",
    "updateproportion",
    "insertproportion",
    "scanproportion",
    "readmodifywriteproportion",
    "requestdistribution",
    "hotspotdatafraction",
    "hotspotopnfraction",
    "exponential.percentile",
    "exponential.frac",
    "minscanlength",
    "maxscanlength",
    "scanlengthdistribution",
    "insertorder",
    "zeropadding",
    "core_workload_insertion_retry_limit",
    "core_workload_insertion_retry_interval",
    "core_workload_insertion_keep_going_on_error",
    "hdrhistogram.percentiles",
    "measurement.interval",
    "batchsize",
    "mongodb.upsert",
    "mongodb.url",
    "status",
    "status.interval",
    "label",
    // Our own properties.
    "seed",
    "keyhash",
    "fieldorder",
    "zipfianconstant",
    "compressibility",
    "firstinsert",
];

const IN_EVERY_RUN: &str =
    "seekscope writes latency.hlog, intervals.parquet and run.json for every run";

const UNSUPPORTED: [(&str, &str); 22] = [
    ("measurementtype", IN_EVERY_RUN),
    ("hdrhistogram.fileoutput", IN_EVERY_RUN),
    ("hdrhistogram.output.path", IN_EVERY_RUN),
    ("measurement.histogram.verbose", IN_EVERY_RUN),
    ("measurement.raw.output_file", IN_EVERY_RUN),
    ("measurement.raw.no_summary", IN_EVERY_RUN),
    ("histogram.buckets", IN_EVERY_RUN),
    ("timeseries.granularity", IN_EVERY_RUN),
    ("exporter", "use --ycsb-output or --json"),
    ("exportfile", "use --ycsb-output or --json"),
    ("spin.sleep", "seekscope never busy-waits"),
    (
        "measurement.trackjvm",
        "seekscope does not run on a Java virtual machine",
    ),
    (
        "reportlatencyforeacherror",
        "errors are always counted by name",
    ),
    ("latencytrackederrors", "errors are always counted by name"),
    (
        "db",
        "seekscope connects to MongoDB, or to Cassandra with an option of its own",
    ),
    ("dotransactions", "load and run are separate phases"),
    (
        "mongodb.batchsize",
        "YCSB ignores it as well; the property is called batchsize",
    ),
    (
        "mongodb.writeConcern",
        "put w= and journal= into the connection string",
    ),
    (
        "mongodb.readPreference",
        "put readPreference= into the connection string",
    ),
    (
        "mongodb.maxconnections",
        "every operation in flight has its own connection",
    ),
    (
        "mongodb.threadsAllowedToBlockForConnectionMultiplier",
        "every operation in flight has its own connection",
    ),
    ("mongodb.database", "name the database on the command line"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_has_no_effect() {
        let properties =
            Properties::parse("recordcount=5\nspin.sleep=true\nrecordcuont=7\n").unwrap();
        let told = without_effect(&properties);
        let names: Vec<&str> = told.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["recordcuont", "spin.sleep"]);
        assert_eq!(treatment("recordcount"), Treatment::Supported);
        assert_eq!(treatment("Recordcount"), Treatment::Unknown);
    }
}
