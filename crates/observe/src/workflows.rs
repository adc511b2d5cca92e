//! Runs counted by workflow, for a bounded number of names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use switchyard_core::RunId;

use crate::about;
use crate::metrics::STATUSES;

/// The most workflows with their own series. Clients choose names: without a bound they could exhaust the memory.
const NAMES_MAX: usize = 100;

/// The most unfinished runs whose workflow is remembered.
const RUNS_MAX: usize = 100_000;

const OTHER: &str = "other";
const UNKNOWN: &str = "unknown";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WorkflowLabels {
    workflow: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndLabels {
    workflow: Arc<str>,
    status: &'static str,
}

#[derive(Debug)]
pub(crate) struct Workflows {
    accepted: Family<WorkflowLabels, Counter>,
    ended: Family<EndLabels, Counter>,
    known: Mutex<Known>,
}

/// The workflow names of unfinished runs: the last event of a run does not contain the name.
#[derive(Debug, Default)]
struct Known {
    names: HashSet<Arc<str>>,
    runs: HashMap<RunId, Arc<str>>,
}

impl Known {
    /// The label of a workflow: its name, or `other` beyond [`NAMES_MAX`].
    fn label(&mut self, workflow: &Arc<str>) -> Arc<str> {
        if let Some(known) = self.names.get(workflow) {
            return known.clone();
        }
        if self.names.len() == NAMES_MAX {
            return OTHER.into();
        }
        self.names.insert(workflow.clone());
        workflow.clone()
    }
}

impl Workflows {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let (accepted, ended) = (Family::default(), Family::default());
        let (began, end) = (about::WORKFLOW_RUNS_ACCEPTED, about::WORKFLOW_RUNS_ENDED);
        registry.register(began.name, began.help, Family::clone(&accepted));
        registry.register(end.name, end.help, Family::clone(&ended));
        // A family without series is not exposed, and a counter that appears at 1 has no rate.
        drop(accepted.get_or_create(&WorkflowLabels { workflow: OTHER.into() }));
        for status in STATUSES {
            drop(ended.get_or_create(&EndLabels { workflow: OTHER.into(), status }));
        }
        Self { accepted, ended, known: Mutex::default() }
    }

    pub(crate) fn accepted(&self, run: RunId, workflow: &Arc<str>) {
        let workflow = self.begun(run, workflow);
        self.accepted.get_or_create(&WorkflowLabels { workflow }).inc();
    }

    /// Remembers the workflow of a run that is under way.
    pub(crate) fn begun(&self, run: RunId, workflow: &Arc<str>) -> Arc<str> {
        let mut known = self.known.lock();
        let label = known.label(workflow);
        if known.runs.len() < RUNS_MAX {
            known.runs.insert(run, label.clone());
        }
        label
    }

    pub(crate) fn ended(&self, run: RunId, status: &'static str) {
        let workflow = self.known.lock().runs.remove(&run).unwrap_or_else(|| UNKNOWN.into());
        self.ended.get_or_create(&EndLabels { workflow, status }).inc();
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text;

    use super::*;

    fn run(n: u64) -> RunId {
        format!("run_01hf7yat00{n:016}").parse().unwrap()
    }

    #[test]
    fn names_are_bounded_and_ends_find_their_workflow() {
        let mut registry = Registry::default();
        let workflows = Workflows::register(&mut registry);
        for n in 0..=NAMES_MAX as u64 {
            workflows.accepted(run(n), &format!("w{n}").into());
        }
        workflows.ended(run(0), "failed");
        workflows.ended(run(NAMES_MAX as u64), "succeeded");
        workflows.ended(run(0), "succeeded");
        let mut page = String::new();
        text::encode(&mut page, &registry).unwrap();
        for line in [
            r#"workflow_runs_accepted_total{workflow="w99"} 1"#,
            r#"workflow_runs_accepted_total{workflow="other"} 1"#,
            r#"workflow_runs_ended_total{workflow="w0",status="failed"} 1"#,
            r#"workflow_runs_ended_total{workflow="other",status="succeeded"} 1"#,
            r#"workflow_runs_ended_total{workflow="unknown",status="succeeded"} 1"#,
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }
}
