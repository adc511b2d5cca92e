//! Checks from the archive alone whether the answers of the servers were true.

use std::collections::HashMap;

use switchyard_core::RunId;
use switchyard_core::run::{Event, EventKind, Run};

use crate::check::Violations;
use crate::decisions::{Answer, Decision, known};
use crate::load::{Asked, Submission};
use crate::report::{Answers, Report};

/// The archived effects of all requests.
pub(crate) struct Found<'a> {
    asked: &'a Asked,
    /// The decisions about each run, with how often each took effect.
    decisions: HashMap<RunId, Vec<(&'a Decision, usize)>>,
    /// The runs that each submission created, by the submission's mark.
    submitted: HashMap<&'a str, Vec<RunId>>,
    /// How often each operation took effect on a run.
    operations: HashMap<(RunId, String), usize>,
}

impl<'a> Found<'a> {
    pub(crate) fn new(asked: &'a Asked) -> Self {
        let mut decisions: HashMap<RunId, Vec<(&Decision, usize)>> = HashMap::new();
        for decision in &asked.decisions {
            decisions.entry(decision.run).or_default().push((decision, 0));
        }
        let submitted = asked.submissions.iter().map(|submission| (&*submission.mark, Vec::new())).collect();
        Self { asked, decisions, submitted, operations: HashMap::new() }
    }

    pub(crate) fn look_through(&mut self, run: &Run, events: &[Event]) {
        for event in events {
            for (decision, times) in self.decisions.get_mut(&run.id).into_iter().flatten() {
                *times += usize::from(decision.made(&event.kind));
            }
            if let Some(operation) = event.kind.operation() {
                *self.operations.entry((run.id, operation.id.to_string())).or_default() += 1;
            }
            if let EventKind::RunAccepted(accepted) = &event.kind
                && accepted.parent.is_none()
                && let Ok(input) = serde_json::to_value(&accepted.input)
                && let Some(mark) = input["json"]["mark"].as_str()
                && let Some(runs) = self.submitted.get_mut(mark)
            {
                runs.push(run.id);
            }
        }
    }

    pub(crate) fn check(&self, violations: &mut Violations) {
        for (decision, times) in self.decisions.values().flatten() {
            let Decision { run, kind, mark, answers } = decision;
            let (allowed, why) = match decision.known() {
                Answer::Done => (1..=1, "was acknowledged"),
                Answer::Refused => (0..=0, "was refused"),
                Answer::Unknown => (0..=1, "may take effect once"),
            };
            violations.unless(allowed.contains(times), || {
                format!("{kind} {mark} of {run} {why} ({answers:?}) and took effect {times} times")
            });
        }
        for submission in &self.asked.submissions {
            self.check_submission(submission, violations);
        }
        for ((run, operation), times) in &self.operations {
            violations
                .unless(*times <= 1, || format!("operation {operation} of {run} took effect {times} times"));
        }
    }

    fn check_submission(&self, submission: &Submission, violations: &mut Violations) {
        let Submission { mark, run, answers } = submission;
        let answer = known(answers);
        let runs = self.submitted.get(&**mark).map_or(&[][..], Vec::as_slice);
        let fits = match answer {
            Answer::Done => runs.len() == 1 && run.is_none_or(|run| runs[0] == run),
            Answer::Refused => runs.is_empty(),
            Answer::Unknown => runs.len() <= 1,
        };
        violations
            .unless(fits, || format!("submission {mark} was answered {answers:?} {run:?} and made {runs:?}"));
    }

    pub(crate) fn count(&self, report: &mut Report) {
        for submission in &self.asked.submissions {
            report.submissions.add(&submission.answers);
        }
        for decision in &self.asked.decisions {
            report.decisions.entry(decision.kind.to_string()).or_default().add(&decision.answers);
        }
    }
}

impl Answers {
    fn add(&mut self, answers: &[Answer]) {
        match known(answers) {
            Answer::Done => {
                self.acknowledged += 1;
                self.cleared_up += usize::from(answers.first() != Some(&Answer::Done));
            }
            Answer::Refused => self.refused += 1,
            Answer::Unknown => self.unknown += 1,
        }
    }
}
