//! JSON to CEL, borrowing text, and back.

use std::collections::HashMap;

use cel::Value as Cel;
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
};
use cel::common::value::Val;
use cel::objects::OptionalValue;
use serde_json::{Map, Number, Value};

use crate::duration::HumanDuration;

/// Integers become `int` whenever they fit, so that they can be used with the literals of an expression.
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

/// Keys come back sorted: CEL's maps have no order, and a stored output must not depend on a hash seed.
pub(super) fn to_json(value: &Cel) -> Result<Value, String> {
    Ok(match value {
        Cel::Null => Value::Null,
        Cel::Bool(value) => Value::Bool(*value),
        Cel::Int(value) => Value::from(*value),
        Cel::UInt(value) => Value::from(*value),
        Cel::Float(value) => {
            let number = Number::from_f64(*value);
            Value::Number(number.ok_or_else(|| format!("the result is {value}, which JSON cannot carry"))?)
        }
        Cel::String(text) => Value::String(text.as_str().to_owned()),
        Cel::List(list) => Value::Array(list.iter().map(to_json).collect::<Result<_, _>>()?),
        Cel::Map(map) => {
            let mut entries: Vec<_> = map.map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            let mut object = Map::with_capacity(entries.len());
            for (key, value) in entries {
                object.insert(key.to_string(), to_json(value)?);
            }
            Value::Object(object)
        }
        Cel::Duration(duration) => match duration.to_std() {
            Ok(duration) => Value::String(HumanDuration(duration).to_string()),
            Err(_) => return Err("the result is a negative duration".to_owned()),
        },
        Cel::Opaque(_) => match <&OptionalValue>::try_from(value) {
            Ok(optional) => optional.value().map_or(Ok(Value::Null), to_json)?,
            Err(_) => return Err(unfit(value)),
        },
        Cel::Bytes(_) | Cel::Timestamp(_) => value.json().map_err(|_| unfit(value))?,
        Cel::Function(..) | Cel::Struct(_) => return Err(unfit(value)),
    })
}

fn unfit(value: &Cel) -> String {
    format!("the result is a {}, which JSON cannot carry", value.type_of())
}
