//! The report of a fault test.

use std::collections::BTreeMap;
use std::fmt;

use crate::faults::Made;

/// The number of requests by answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers {
    pub acknowledged: usize,
    pub refused: usize,
    pub unknown: usize,
    /// Acknowledged requests whose outcome was unknown until they were repeated.
    pub cleared_up: usize,
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} acknowledged, {} refused, {} unknown", self.acknowledged, self.refused, self.unknown)?;
        write!(f, "; {} acknowledged on repetition only", self.cleared_up)
    }
}

#[derive(Debug, Default)]
pub struct Report {
    pub seed: u64,
    pub faults: BTreeMap<&'static str, Made>,
    /// Number of accepted runs; `children` are the runs that they started.
    pub runs: usize,
    pub children: usize,
    pub succeeded: usize,
    pub failed: usize,
    pub cancelled: usize,
    /// Answers to submissions; `decisions` has those to other requests, by kind.
    pub submissions: Answers,
    pub decisions: BTreeMap<String, Answers>,
    /// Acknowledged requests that were sent once more.
    pub asked_again: usize,
    /// Requests that were not answered in the time in which a server reports an unknown outcome.
    pub unanswered: usize,
    /// Calls of the external service; `repeated` of them were caused by a fault.
    pub executions: usize,
    pub repeated: usize,
    pub violations: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        writeln!(
            f,
            "{} runs accepted with {} children: {} succeeded, {} failed, {} cancelled",
            self.runs, self.children, self.succeeded, self.failed, self.cancelled
        )?;
        writeln!(f, "submissions: {}", self.submissions)?;
        for (kind, answers) in &self.decisions {
            writeln!(f, "{kind}: {answers}")?;
        }
        writeln!(f, "{} acknowledged requests were sent once more", self.asked_again)?;
        writeln!(f, "{} requests were not answered in time", self.unanswered)?;
        for (fault, made) in &self.faults {
            write!(f, "{} × {fault}", made.times)?;
            match made.unit {
                Some(unit) => writeln!(f, ": {} {unit}", made.seen)?,
                None => writeln!(f)?,
            }
        }
        writeln!(f, "{} calls of the world outside, {} of them repeated", self.executions, self.repeated)?;
        write!(f, "{} violations", self.violations.len())?;
        for violation in &self.violations {
            write!(f, "\n  {violation}")?;
        }
        Ok(())
    }
}
