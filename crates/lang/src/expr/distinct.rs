//! `list.distinct()`: the first of each set of equal elements, in order.
//!
//! The library compares each element with every other. This function compares elements only within a bucket of those
//! that can be equal, so that a list of 10,000 texts takes 10,000 comparisons.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use cel::common::types::{CelDouble, CelInt, CelList, CelString, CelUInt};
use cel::common::value::{CowVal, Val};

use super::budget::{Budget, Exceeded};
use super::cost::Weight;

/// The list without repetitions, or the argument as `Err` if it is no list.
pub(super) fn distinct<'b, 'v>(
    list: CowVal<'b, 'v>,
    budget: &Budget<'_>,
) -> Result<Result<CowVal<'b, 'v>, CowVal<'b, 'v>>, Exceeded> {
    let Some(items) = list.downcast_ref::<CelList<'_>>() else { return Ok(Err(list)) };
    let weight = Weight::of(list.as_ref(), budget.bytes_left());
    budget.walk(&weight)?;
    // Charges for the buckets, and for the copy of the remaining elements.
    budget.make(2 * weight.bytes())?;
    let mut buckets: HashMap<u64, Vec<(usize, u64)>> = HashMap::new();
    let mut first = Vec::new();
    for (at, item) in items.iter().enumerate() {
        budget.step(1)?;
        let bucket = buckets.entry(bucket(item.as_ref())).or_default();
        let own = Weight::of(item.as_ref(), u64::MAX).values;
        let mut is_new = true;
        for (before, values) in bucket.iter() {
            budget.step(1 + own.min(*values) / 8)?;
            if item.equals(items[*before].as_ref()) {
                is_new = false;
                break;
            }
        }
        if is_new {
            bucket.push((at, own));
            first.push(item.clone_as_boxed());
        }
    }
    Ok(Ok(CowVal::owned(CelList::from(first))))
}

/// The bucket of an element. Equal elements share one: `1`, `1u` and `1.0` are equal.
fn bucket(value: &dyn Val) -> u64 {
    let mut hasher = DefaultHasher::new();
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        text.inner().hash(&mut hasher);
    } else if let Some(number) = number(value) {
        // Both zeros are equal.
        (number + 0.0).to_bits().hash(&mut hasher);
    } else {
        value.get_type().name().hash(&mut hasher);
    }
    hasher.finish()
}

fn number(value: &dyn Val) -> Option<f64> {
    if let Some(value) = value.downcast_ref::<CelInt>() {
        return Some(*value.inner() as f64);
    }
    if let Some(value) = value.downcast_ref::<CelUInt>() {
        return Some(*value.inner() as f64);
    }
    value.downcast_ref::<CelDouble>().map(|value| *value.inner())
}
