//! The output of a run whose author declares none.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::limits;
use crate::spec::Definition;

/// The workflow's `output`, or for a workflow that ends in several nodes an object with the output of each. A workflow
/// that ends in a single node needs none: its run takes over the output of that node.
pub(super) fn effective(definition: &Definition) -> Option<Value> {
    if let Some(output) = &definition.output {
        return Some(output.clone());
    }
    let sinks = sinks(definition);
    (2..=limits::IMPLIED_OUTPUTS_MAX).contains(&sinks.len()).then(|| {
        let of = |id: &&str| ((*id).to_owned(), Value::String(format!("${{{{ nodes[\"{id}\"].output }}}}")));
        Value::Object(sinks.iter().map(of).collect::<Map<_, _>>())
    })
}

/// The nodes that no other node needs.
fn sinks(definition: &Definition) -> Vec<&str> {
    let needed: HashSet<&str> =
        definition.nodes.values().flat_map(|node| &node.common.needs).map(String::as_str).collect();
    definition.nodes.keys().map(String::as_str).filter(|id| !needed.contains(id)).collect()
}
