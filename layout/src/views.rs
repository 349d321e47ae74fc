//! MongoDB's views, which have no files: finds out what the name of a view refers to.

use std::sync::atomic::AtomicBool;

use seekscope_wiredtiger::View;
use seekscope_wiredtiger::views::VIEWS_COLLECTION;

use crate::data_directory::DataDirectory;
use crate::gate::Gate;

impl DataDirectory {
    /// Returns the view `database.view` as of the newest checkpoint; `None` if there is none of
    /// that name, or if the database's list of views cannot be read.
    pub fn view(&self, wanted: &str, stop: &AtomicBool) -> Option<View> {
        let (database, _) = wanted.split_once('.')?;
        let list = format!("{database}.{VIEWS_COLLECTION}");
        let table = self
            .tables()
            .iter()
            .find(|table| table.namespace.as_deref() == Some(&list) && table.index.is_none())?;
        let gate = Gate::new(stop, None);
        let rows = self.with_restarts(&gate, &table.file, |snapshot| {
            let mut rows = Vec::new();
            let each_row = &mut |row| rows.push(row);
            snapshot.read_rows(self.path(), &table.file, &gate, &self.cache, each_row)?;
            Ok(rows)
        });
        View::find(&rows.ok()?.0, wanted)
    }
}
