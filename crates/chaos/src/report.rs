//! What came of it.

use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug, Default)]
pub struct Report {
    pub seed: u64,
    /// How often each fault was made.
    pub faults: BTreeMap<&'static str, usize>,
    /// Accepted runs, and those that they started.
    pub runs: usize,
    pub children: usize,
    pub succeeded: usize,
    pub failed: usize,
    pub cancelled: usize,
    pub patches: usize,
    pub decisions: usize,
    /// Requests that were refused or not answered. Nothing is owed for those.
    pub refused: usize,
    /// Calls of the world outside, and how many of them a fault repeated.
    pub executions: usize,
    pub repeated: usize,
    pub violations: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        writeln!(
            f,
            "{} runs accepted with {} children: {} succeeded, {} failed, {} cancelled; {} patches, {} decisions, {} \
             requests refused or unanswered",
            self.runs,
            self.children,
            self.succeeded,
            self.failed,
            self.cancelled,
            self.patches,
            self.decisions,
            self.refused
        )?;
        let faults: Vec<String> =
            self.faults.iter().map(|(fault, count)| format!("{count} × {fault}")).collect();
        writeln!(f, "faults: {}", faults.join(", "))?;
        writeln!(f, "{} calls of the world outside, {} of them repeated", self.executions, self.repeated)?;
        write!(f, "{} violations", self.violations.len())?;
        for violation in &self.violations {
            write!(f, "\n  {violation}")?;
        }
        Ok(())
    }
}
