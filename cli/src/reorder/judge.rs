//! Judges whether a copy should replace the original. Changes by others are written to new places in the copy
//! too, and if there are many, its order is lost before it is used.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use seekscope_reorder::Judge;
use seekscope_report::reorder::sentences;
use seekscope_run::RunDocument;
use seekscope_server::{Namespace, Server};

use super::Reorder;
use super::apply::checkpoint;
use super::collection_files::CollectionFiles;
use crate::args::ScanDiskArgs;
use crate::interruption::Interruption;

/// Compares the leaves of the original and the copy as of a checkpoint.
pub struct OrderJudge {
    server: Server,
    namespace: Namespace,
    files: CollectionFiles,
    disk: ScanDiskArgs,
    interruption: Interruption,
}

impl Reorder {
    /// Returns a judge; `None` if the layout of the copy cannot be read. Whether the judge is used is up to the
    /// library, which knows what was recorded of the copy.
    pub fn judge(&self, files: &CollectionFiles, namespace: &Namespace) -> Option<Box<dyn Judge>> {
        files.path.as_ref()?;
        Some(Box::new(OrderJudge {
            server: self.server.clone(),
            namespace: namespace.clone(),
            files: files.clone(),
            disk: self.args.disk.clone(),
            interruption: self.interruption.clone(),
        }))
    }
}

impl OrderJudge {
    /// Returns the share of a scan's steps that are sequential; `None` if the files cannot be read.
    async fn sequential_share(&mut self, namespace: &Namespace) -> Option<f64> {
        self.files.ask_again(namespace).await;
        // Its limitations are noted with the other layouts of the run.
        let mut unused = RunDocument::begin("reorder", Vec::new());
        let layout = self
            .files
            .layout(namespace, &self.disk, &mut unused, &self.interruption);
        let layout = layout.await.ok()??;
        Some(layout.documents()?.order.as_ref()?.sequential_share)
    }
}

impl Judge for OrderJudge {
    /// Accepts a copy that cannot be judged.
    fn judge<'a>(
        &'a mut self,
        copy: &'a Namespace,
        changes: u64,
    ) -> BoxFuture<'a, Result<(), String>> {
        async move {
            if checkpoint(&self.server, self.files.path.as_deref())
                .await
                .is_err()
            {
                return Ok(());
            }
            let original = self.namespace.clone();
            let before = self.sequential_share(&original).await;
            let after = self.sequential_share(copy).await;
            match before.zip(after) {
                Some((before, after)) if after < before => {
                    Err(sentences::no_better(before, after, changes))
                }
                _ => Ok(()),
            }
        }
        .boxed()
    }
}
