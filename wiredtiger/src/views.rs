//! MongoDB's views, which are listed in the collection `system.views` of each database: they have
//! no entry in the catalogue and no file. Time-series collections are views on their buckets.

use bson::RawDocument;

use crate::walk::KeyValue;

/// The collection of each database that lists its views.
pub const VIEWS_COLLECTION: &str = "system.views";
const BUCKETS_PREFIX: &str = "system.buckets.";

/// A view and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// `database.view`.
    pub namespace: String,
    /// `database.collection`, which may be a view itself.
    pub on: String,
}

impl View {
    /// Finds the view named `database.view` in the rows of its database's `system.views`.
    #[must_use]
    pub fn find(rows: &[KeyValue], namespace: &str) -> Option<View> {
        let (database, _) = namespace.split_once('.')?;
        rows.iter().find_map(|(_, value)| {
            let entry = RawDocument::from_bytes(value).ok()?;
            let on = entry.get_str("viewOn").ok()?;
            (entry.get_str("_id").ok()? == namespace).then(|| View {
                namespace: namespace.to_owned(),
                on: format!("{database}.{on}"),
            })
        })
    }

    /// Returns whether its documents are buckets of a time series, which the server unpacks.
    #[must_use]
    pub fn is_time_series(&self) -> bool {
        let collection = self.on.split_once('.').map(|(_, collection)| collection);
        collection.is_some_and(|name| name.starts_with(BUCKETS_PREFIX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn views_say_what_they_look_at() {
        let entries = [
            doc! { "_id": "shop.cheap", "viewOn": "items", "pipeline": [] },
            doc! { "_id": "shop.load", "viewOn": "system.buckets.load", "pipeline": [] },
            doc! { "_id": "shop.broken" },
        ];
        let mut rows: Vec<KeyValue> = entries
            .iter()
            .map(|entry| (vec![0x81], entry.to_vec().unwrap()))
            .collect();
        rows.push((vec![0x82], vec![5, 0, 0, 0]));
        let cheap = View::find(&rows, "shop.cheap").unwrap();
        assert_eq!(
            (cheap.on.as_str(), cheap.is_time_series()),
            ("shop.items", false)
        );
        let load = View::find(&rows, "shop.load").unwrap();
        assert_eq!(load.on, "shop.system.buckets.load");
        assert!(load.is_time_series());
        for none in ["shop.broken", "shop.items", "cheap", ""] {
            assert_eq!(View::find(&rows, none), None, "{none}");
        }
    }
}
