//! Sets one parameter of the server.

use mongodb::bson::{Bson, doc};
use seekscope_run::tune::KnobValue;
use seekscope_server::{Server, ServerError};

use super::{ApplyError, same};
use crate::discovery::value_of;

/// Sets the parameter in its own type, and reads it back.
pub(super) async fn set(
    server: &Server,
    knob: &str,
    name: &str,
    value: &KnobValue,
) -> Result<(), ApplyError> {
    let found = get(server, knob, name).await?;
    if is(&found, value) {
        return Ok(());
    }
    let typed = like(&found, value).ok_or_else(|| ApplyError::NoMeans {
        knob: knob.into(),
        why: format!("its parameter {name} is {found}, which {value} cannot replace"),
    })?;
    let command = doc! { "setParameter": 1, name: typed };
    server
        .command("admin", command)
        .await
        .map_err(|error| refused(knob, error))?;
    let found = get(server, knob, name).await?;
    if is(&found, value) {
        return Ok(());
    }
    Err(ApplyError::NotApplied {
        knob: knob.into(),
        wanted: value.to_string(),
        found: in_words(&found),
    })
}

/// Sets the parameter to the value that it has.
pub(super) async fn set_as_it_is(
    server: &Server,
    knob: &str,
    name: &str,
) -> Result<(), ApplyError> {
    let found = get(server, knob, name).await?;
    let command = doc! { "setParameter": 1, name: found };
    server
        .command("admin", command)
        .await
        .map(drop)
        .map_err(|error| refused(knob, error))
}

/// Converts an error: a rejected value is the setting's failure; a server that does not answer is the session's, and so
/// is a login without the right, which would have no setting accepted.
pub(super) fn refused(knobs: &str, source: ServerError) -> ApplyError {
    match source {
        ServerError::Failed { .. } => ApplyError::Refused {
            knobs: knobs.into(),
            source,
        },
        other => ApplyError::Server(other),
    }
}

pub(super) async fn get(server: &Server, knob: &str, name: &str) -> Result<Bson, ApplyError> {
    let reply = server
        .command("admin", doc! { "getParameter": 1, name: 1 })
        .await
        .map_err(|error| refused(knob, error))?;
    reply.get(name).cloned().ok_or_else(|| ApplyError::NoMeans {
        knob: knob.into(),
        why: format!("the server has no parameter {name}"),
    })
}

pub(super) fn is(found: &Bson, wanted: &KnobValue) -> bool {
    match (value_of(found), wanted) {
        (Some(KnobValue::Integer(found)), KnobValue::Bool(wanted)) => found == i64::from(*wanted),
        (Some(KnobValue::Text(found)), wanted) => found == wanted.to_string(),
        (Some(found), wanted) => same(&found, wanted),
        (None, _) => false,
    }
}

pub(super) fn in_words(found: &Bson) -> String {
    value_of(found).map_or_else(|| found.to_string(), |found| found.to_string())
}

/// Returns the value in the type that the server uses for this parameter.
fn like(found: &Bson, value: &KnobValue) -> Option<Bson> {
    Some(match (found, value) {
        (Bson::Int32(_), KnobValue::Bool(value)) => Bson::Int32((*value).into()),
        (Bson::Int32(_), KnobValue::Integer(value)) => {
            i32::try_from(*value).map_or(Bson::Int64(*value), Bson::Int32)
        }
        (Bson::Int64(_), KnobValue::Integer(value)) => Bson::Int64(*value),
        (Bson::Double(_), value) => Bson::Double(value.number()?),
        (Bson::Int32(_) | Bson::Int64(_), KnobValue::Float(value)) => Bson::Double(*value),
        (Bson::Boolean(_), KnobValue::Bool(value)) => Bson::Boolean(*value),
        (Bson::String(_), KnobValue::Text(text)) => Bson::String(text.clone()),
        // Newer servers report numbers as texts where they also accept a word.
        (Bson::String(_), KnobValue::Integer(value)) => {
            i32::try_from(*value).map_or(Bson::Int64(*value), Bson::Int32)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_the_servers() {
        let typed = |found: Bson, value| like(&found, &value);
        assert_eq!(
            typed(Bson::Int32(1), KnobValue::Integer(64)),
            Some(Bson::Int32(64))
        );
        assert_eq!(
            typed(Bson::Double(60.0), KnobValue::Integer(120)),
            Some(Bson::Double(120.0))
        );
        assert_eq!(
            typed(Bson::Int32(0), KnobValue::Bool(true)),
            Some(Bson::Int32(1))
        );
        assert_eq!(typed(Bson::Boolean(true), KnobValue::Integer(1)), None);
        assert_eq!(typed(Bson::Int32(1), KnobValue::Text("x".into())), None);
        assert!(is(&Bson::Double(60.0), &KnobValue::Integer(60)));
        assert!(is(&Bson::String("0".into()), &KnobValue::Integer(0)));
        assert!(is(&Bson::Int32(1), &KnobValue::Bool(true)));
        assert!(!is(&Bson::Null, &KnobValue::Integer(0)));
    }
}
