//! Cache of the newest version of each workflow, because every submission by name reads it.
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

    /// Stores a version that was read or registered. A version that was read before a registration may arrive after
    /// it.
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
