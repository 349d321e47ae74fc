//! Creates the copy empty first, with all that belongs to it, and removes it again: anything the server
//! rejects is then known before hours are spent on copying.

use seekscope_server::ServerError;

use crate::site::Site;
use crate::state::Record;
use crate::{Definition, ReorderError, indexes, undo};

/// Tries options and indexes. The record must exist already: when this fails, or is killed, the empty
/// collection is removed like an unfinished copy.
pub(crate) async fn try_out(
    site: &Site,
    record: &mut Record,
    definition: &Definition,
) -> Result<(), ReorderError> {
    let refused = |error, what: &str, remedy: &str| refused(site, error, what, remedy);
    indexes::create_copy(site, definition)
        .await
        .map_err(|error| refused(error, "its options", "change them with collMod"))?;
    for spec in indexes::specs(definition) {
        let what = format!("its index {}", spec.get_str("name").unwrap_or_default());
        let created = indexes::create(site, vec![spec]).await;
        created.map_err(|error| refused(error, &what, REMAKE))?;
    }
    let what = "the expireAfterSeconds of its TTL indexes";
    let expiring = indexes::let_expire(site, definition).await;
    expiring.map_err(|error| refused(error, what, REMAKE))?;
    let made = Definition::of(site, site.copy_name()).await?;
    if let Some(what) = indexes::difference(definition, &made) {
        return Err(site.refused(format!(
            "the server gives an empty copy other {what}; change these so that it takes them"
        )));
    }
    undo::drop_copy(site, record).await
}

const REMAKE: &str = "drop that index, or make it anew as this server takes it";

/// Converts an answer that the server will give again into a refusal. A missing right or an absent server is
/// another matter.
fn refused(site: &Site, error: ReorderError, what: &str, remedy: &str) -> ReorderError {
    match error {
        ReorderError::Server(ServerError::Failed { why, .. }) => site.refused(format!(
            "the server does not take {what} for an empty copy: {why}; {remedy}"
        )),
        other => other,
    }
}
