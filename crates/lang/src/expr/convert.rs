//! Converts JSON to CEL, borrowing text, and back.

use std::collections::HashMap;

use cel::Value as Cel;
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional, CelString, CelUInt, Kind,
};
use cel::common::value::{CowVal, Val};
use cel::objects::Key;
use serde_json::{Map, Number, Value};
use switchyard_base::HumanDuration;

use super::budget::Budget;
use super::cost::Weight;
use super::evaluate::NoValue;
use super::operand::Operand;

/// Converts JSON to CEL. Integers become `int` whenever they fit, so that they can be used with the literals of an
/// expression.
pub(super) fn from_json(value: &Value) -> Box<dyn Val + '_> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(value) => Box::new(CelBool::from(*value)),
        Value::Number(number) => from_number(number),
        Value::String(text) => Box::new(CelString::from(text.as_str())),
        Value::Array(list) => Box::new(CelList::from(list.iter().map(from_json).collect::<Vec<_>>())),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| (CelMapKey::from(key.as_str()), from_json(value)));
            Box::new(CelMap::from(entries.collect::<HashMap<_, _>>()))
        }
    }
}

fn from_number(number: &Number) -> Box<dyn Val> {
    if let Some(value) = number.as_i64() {
        return Box::new(CelInt::from(value));
    }
    if let Some(value) = number.as_u64() {
        return Box::new(CelUInt::from(value));
    }
    Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN)))
}

/// The CEL name of a value's type.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null_type",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int",
        Value::Number(number) if number.is_u64() => "uint",
        Value::Number(_) => "double",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "map",
    }
}

/// Converts a result to JSON with sorted keys: CEL's maps have no order, and a stored output must not depend on a hash
/// seed.
pub(super) fn to_json(operand: Operand<'_, '_>, budget: &Budget<'_>) -> Result<Value, NoValue> {
    let value = match operand {
        Operand::Json(value) => {
            budget.copy_json(value)?;
            return Ok(sorted(value));
        }
        Operand::Cel(value) => value,
    };
    // The budget was charged for an owned text when it was made.
    if let CowVal::Owned(value) = value {
        return match String::try_from(value) {
            Ok(text) => Ok(Value::String(text)),
            Err(other) => copied(other.as_ref(), budget),
        };
    }
    copied(value.as_ref(), budget)
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(list) => Value::Array(list.iter().map(sorted).collect()),
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            Value::Object(entries.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        other => other.clone(),
    }
}

fn copied(value: &dyn Val, budget: &Budget<'_>) -> Result<Value, NoValue> {
    let weight = Weight::of(value, budget.bytes_left());
    budget.walk(&weight)?;
    // Bytes become text that is longer by a third.
    budget.make(2 * weight.bytes())?;
    Ok(json(value)?)
}

fn json(value: &dyn Val) -> Result<Value, String> {
    Ok(match value.get_type().kind() {
        Kind::NullType => Value::Null,
        Kind::Boolean => Value::Bool(value.downcast_ref::<CelBool>().is_some_and(|value| *value.inner())),
        Kind::String => {
            Value::String(value.downcast_ref::<CelString<'_>>().map_or("", CelString::inner).to_owned())
        }
        Kind::List => {
            let items = value.downcast_ref::<CelList<'_>>().map(CelList::inner).unwrap_or_default();
            Value::Array(items.iter().map(|item| json(item.as_ref())).collect::<Result<_, _>>()?)
        }
        Kind::Map => {
            let mut entries: Vec<_> =
                value.downcast_ref::<CelMap<'_>>().into_iter().flat_map(|map| map.inner()).collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            let mut object = Map::with_capacity(entries.len());
            for (key, value) in entries {
                object.insert(Key::from(key.clone()).to_string(), json(value.as_ref())?);
            }
            Value::Object(object)
        }
        _ => match value.downcast_ref::<CelOptional<'_>>() {
            Some(optional) => optional.option().map_or(Ok(Value::Null), json)?,
            None => {
                scalar(&Cel::try_from(value).map_err(|_| unfit(value))?).ok_or_else(|| unfit(value))??
            }
        },
    })
}

/// Converts a scalar. `None` if JSON has no such value.
fn scalar(value: &Cel) -> Option<Result<Value, String>> {
    Some(Ok(match value {
        Cel::Int(value) => Value::from(*value),
        Cel::UInt(value) => Value::from(*value),
        Cel::Float(value) => {
            let number = Number::from_f64(*value).map(Value::Number);
            return Some(number.ok_or_else(|| format!("the result is {value}, which JSON cannot carry")));
        }
        // A type is represented by its name.
        Cel::String(text) => Value::String(text.as_str().to_owned()),
        Cel::Duration(duration) => match duration.to_std() {
            Ok(duration) => Value::String(HumanDuration(duration).to_string()),
            Err(_) => return Some(Err("the result is a negative duration".to_owned())),
        },
        Cel::Bytes(_) | Cel::Timestamp(_) => value.json().ok()?,
        _ => return None,
    }))
}

fn unfit(value: &dyn Val) -> String {
    format!("the result is a {}, which JSON cannot carry", value.get_type().name())
}
