//! The newest version of each workflow that was asked for, remembered: every submission by name asks.
//!
//! Always exact: one process writes to the file, and it reports every registration.

use std::collections::HashMap;

use parking_lot::Mutex;
use switchyard_store::WorkflowRecord;

#[derive(Debug, Default)]
pub(super) struct Newest {
    by_name: Mutex<HashMap<String, WorkflowRecord>>,
}

impl Newest {
    pub(super) fn of(&self, name: &str) -> Option<WorkflowRecord> {
        self.by_name.lock().get(name).cloned()
    }

    /// A version that was read or registered. One that was read before a registration may come after it.
    pub(super) fn learn(&self, record: &WorkflowRecord) {
        let mut by_name = self.by_name.lock();
        match by_name.get_mut(&record.name) {
            Some(known) if known.version >= record.version => {}
            Some(known) => *known = record.clone(),
            None => {
                by_name.insert(record.name.clone(), record.clone());
            }
        }
    }
}
