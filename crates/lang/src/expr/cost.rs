//! The sizes of values, which determine the cost of copying and reading them.
//!
//! A value is weighed before it is copied. Weighing ends early when the budget could not pay for the copy anyway.

use cel::common::types::{CelBytes, CelList, CelMap, CelMapKey, CelOptional, CelString, Kind};
use cel::common::value::Val;
use serde_json::Value;

use super::budget::{Budget, Exceeded};

/// The memory of a value besides its text: the box, the slot in a list.
pub(super) const VALUE_BYTES: u64 = 64;

/// The memory of a map entry besides its value and the text of its key.
pub(super) const ENTRY_BYTES: u64 = 64;

/// Values that are copied or read in the time of one step.
const VALUES_PER_STEP: u64 = 8;

/// The size of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    /// Values inside, itself included.
    pub(super) values: u64,
    /// Floats among them: they make the longest texts.
    pub(super) floats: u64,
    /// Entries of maps.
    pub(super) entries: u64,
    /// Bytes of text.
    pub(super) text: u64,
    /// Bytes of text that a copy copies: the rest is borrowed.
    pub(super) owned_text: u64,
}

impl Weight {
    /// The weight of a value of the scope; weighing stops at `enough` bytes.
    pub(super) fn of_json(value: &Value, enough: u64) -> Self {
        let mut weight = Self::default();
        weight.add_json(value, enough);
        weight
    }

    /// The weight of a value of an evaluation; weighing stops at `enough` bytes.
    pub(super) fn of(value: &dyn Val, enough: u64) -> Self {
        let mut weight = Self::default();
        weight.add(value, enough);
        weight
    }

    /// Bytes of a copy that shares no text.
    pub(super) fn bytes(&self) -> u64 {
        self.structure() + self.text
    }

    /// Bytes of a copy that borrows the text that this value borrows.
    pub(super) fn copy_bytes(&self) -> u64 {
        self.structure() + self.owned_text
    }

    fn structure(&self) -> u64 {
        self.values * VALUE_BYTES + self.entries * ENTRY_BYTES
    }

    fn add_json(&mut self, value: &Value, enough: u64) {
        self.values += 1;
        match value {
            Value::String(text) => self.text += text.len() as u64,
            Value::Array(list) => {
                for value in list {
                    if self.structure() > enough {
                        return;
                    }
                    self.add_json(value, enough);
                }
            }
            Value::Object(map) => {
                for (key, value) in map {
                    if self.structure() > enough {
                        return;
                    }
                    self.entries += 1;
                    self.text += key.len() as u64;
                    self.add_json(value, enough);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn add(&mut self, value: &dyn Val, enough: u64) {
        self.values += 1;
        match value.get_type().kind() {
            Kind::String => {
                if let Some(text) = value.downcast_ref::<CelString<'_>>() {
                    self.add_text(text);
                }
            }
            Kind::Double => self.floats += 1,
            Kind::Bytes => {
                if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>() {
                    self.text += bytes.inner().len() as u64;
                    self.owned_text += bytes.inner().len() as u64;
                }
            }
            Kind::List => {
                for item in value.downcast_ref::<CelList<'_>>().map(CelList::inner).unwrap_or_default() {
                    if self.structure() > enough {
                        return;
                    }
                    self.add(item.as_ref(), enough);
                }
            }
            Kind::Map => {
                for (key, value) in value.downcast_ref::<CelMap<'_>>().into_iter().flat_map(|map| map.inner())
                {
                    if self.structure() > enough {
                        return;
                    }
                    self.entries += 1;
                    if let CelMapKey::String(key) = key {
                        self.add_text(key);
                    }
                    self.add(value.as_ref(), enough);
                }
            }
            _ => {
                if let Some(inside) = value.downcast_ref::<CelOptional<'_>>().and_then(CelOptional::option) {
                    self.add(inside, enough);
                }
            }
        }
    }

    fn add_text(&mut self, text: &CelString<'_>) {
        self.text += text.len() as u64;
        if text.as_borrowed().is_none() {
            self.owned_text += text.len() as u64;
        }
    }
}

impl Budget<'_> {
    /// Charges for a walk through values.
    pub(super) fn walk(&self, weight: &Weight) -> Result<(), Exceeded> {
        self.step(weight.values / VALUES_PER_STEP)?;
        self.scan(weight.text)
    }

    /// Charges for a copy of an evaluation's value.
    pub(super) fn copy(&self, value: &dyn Val) -> Result<(), Exceeded> {
        let weight = Weight::of(value, self.bytes_left());
        self.step(weight.values / VALUES_PER_STEP)?;
        self.make(weight.copy_bytes())
    }

    /// Charges for JSON that becomes a value of an evaluation and lends it its text.
    pub(super) fn borrow_json(&self, value: &Value) -> Result<(), Exceeded> {
        let weight = Weight::of_json(value, self.bytes_left());
        self.step(weight.values / VALUES_PER_STEP)?;
        self.make(weight.structure())
    }

    /// Charges for JSON that is compared with others.
    pub(crate) fn compare_json(&self, value: &Value, others: usize) -> Result<(), Exceeded> {
        let weight = Weight::of_json(value, self.bytes_left());
        let others = others as u64;
        self.step(1 + weight.values.saturating_mul(others) / VALUES_PER_STEP)?;
        self.scan(weight.text.saturating_mul(others))
    }

    /// Charges for a copy of JSON.
    pub(crate) fn copy_json(&self, value: &Value) -> Result<(), Exceeded> {
        let weight = Weight::of_json(value, self.bytes_left());
        self.step(weight.values / VALUES_PER_STEP)?;
        self.make(weight.bytes())
    }
}
