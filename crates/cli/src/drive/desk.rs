//! What a run waits for that only a person can give: approvals are asked for on a terminal, and said otherwise.

use std::collections::HashSet;
use std::time::Duration;

use switchyard_core::run::{Decision, Event, EventKind, NodeState, Refusal, Run, WaitFor, Waiting};
use switchyard_core::{ApprovalId, RunId};
use switchyard_runtime::{Engine, EngineError};
use switchyard_store::{ApprovalFilter, ApprovalRecord, ApprovalStatus};
use tokio::sync::mpsc;
use tokio::time::Interval;

use super::How;
use super::typed::{decision, read_lines};
use crate::errors::Failure;
use crate::output;
use crate::progress::Progress;
use crate::settings;

/// How often runs that a run has started are looked through: their events are not followed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Desk<'a> {
    how: How<'a>,
    run: RunId,
    /// Something was seen that may want an approval.
    look: bool,
    has_children: bool,
    told: HashSet<ApprovalId>,
    asking: Option<Question>,
    /// Lines from the terminal; `None` before the first question, and after the terminal was closed.
    lines: Option<mpsc::UnboundedReceiver<String>>,
    can_ask: bool,
    ticks: Interval,
}

/// Why the desk has something to do.
#[derive(Debug)]
pub(super) enum Wake {
    /// A line from the terminal; `None` when no more can come.
    Line(Option<String>),
    Tick,
}

/// A question that stands on the terminal.
#[derive(Debug)]
struct Question {
    approval: ApprovalId,
    /// Once it is known, the comment is asked for.
    decision: Option<Decision>,
}

impl<'a> Desk<'a> {
    pub(super) fn new(how: How<'a>, run: &Run) -> Self {
        let has_children = waits(run).any(|on| matches!(on, Waiting::Children(_)));
        Self {
            how,
            run: run.id,
            look: run.approvals > 0 || has_children,
            has_children,
            told: HashSet::new(),
            asking: None,
            lines: None,
            can_ask: how.settings.can_ask(),
            ticks: tokio::time::interval(LOOK_EVERY),
        }
    }

    /// Says what a resumed run was waiting for already.
    pub(super) fn tell_standing(&self, run: &Run, progress: &Progress) {
        for ix in run.ir.indices() {
            let node = run.node(ix);
            if node.state == NodeState::Waiting
                && let Some(Waiting::For(WaitFor::Signal { name, .. })) = node.wait.as_deref()
            {
                progress.tell(&format!("{} waits for signal `{name}`", run.ir.node(ix).id));
                self.tell_signal(name, progress);
            }
        }
    }

    pub(super) fn note(&mut self, event: &Event, progress: &Progress) {
        match &event.kind {
            EventKind::NodeWaiting { on: WaitFor::Approval(_), .. } => self.look = true,
            EventKind::NodeWaiting { on: WaitFor::Children(_), .. } => self.has_children = true,
            EventKind::NodeWaiting { on: WaitFor::Signal { name, .. }, .. } => {
                self.tell_signal(name, progress)
            }
            // Decided by its time-out, perhaps, while somebody was being asked.
            EventKind::ApprovalDecided { approval, .. } => self.withdraw(approval, progress),
            _ => {}
        }
    }

    fn tell_signal(&self, name: &str, progress: &Progress) {
        let send = self.how.settings.command(&format!("runs signal {} {name}", self.run));
        progress.hint(&format!("stop with Ctrl-C, then {send}, then {}", self.how.resume(self.run)));
    }

    fn withdraw(&mut self, approval: &ApprovalId, progress: &Progress) {
        if self.asking.as_ref().is_some_and(|question| question.approval == *approval) {
            self.asking = None;
            output::tell("");
            progress.show();
        }
        self.look = true;
    }

    /// Finds approvals that this run, or a run that it started, waits for.
    pub(super) async fn look(&mut self, engine: &Engine, progress: &Progress) -> Result<(), Failure> {
        if !std::mem::take(&mut self.look) || self.asking.is_some() {
            return Ok(());
        }
        let pending = ApprovalFilter { run: None, status: Some(ApprovalStatus::Pending) };
        for record in engine.archive().approvals(&pending).await? {
            if self.told.contains(&record.approval) || !self.is_ours(record.run, engine).await? {
                continue;
            }
            self.told.insert(record.approval.clone());
            progress.tell(&wanted(&record, self.run));
            if self.can_ask {
                return self.ask(&record, engine, progress).await;
            }
            self.tell_how(&record.approval, progress);
        }
        Ok(())
    }

    async fn is_ours(&self, mut run: RunId, engine: &Engine) -> Result<bool, Failure> {
        while run != self.run {
            match engine.archive().run(run).await?.and_then(|record| record.parent) {
                Some(parent) => run = parent,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn tell_how(&self, approval: &ApprovalId, progress: &Progress) {
        let decide = self.how.settings.command(&format!("approvals approve {approval}"));
        let resume = self.how.resume(self.run);
        progress.hint(&format!("stop with Ctrl-C, then {decide} (or reject), then {resume}"));
    }

    async fn ask(
        &mut self,
        record: &ApprovalRecord,
        engine: &Engine,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let shown = engine.payloads().load(&record.payload).await.map_err(EngineError::from)?;
        progress.hide();
        if !shown.is_null() {
            output::tell(&serde_json::to_string_pretty(&shown).unwrap_or_default());
        }
        let lines = self.lines.get_or_insert_with(read_lines);
        // What was typed before the question is not an answer to it.
        while lines.try_recv().is_ok() {}
        output::ask("approve? [y/n]");
        self.asking = Some(Question { approval: record.approval.clone(), decision: None });
        Ok(())
    }

    /// Returns when somebody has typed a line into a question, or when it is time to look through the children.
    pub(super) async fn next(&mut self) -> Wake {
        let (asking, has_children) = (self.asking.is_some(), self.has_children);
        let line = async {
            match &mut self.lines {
                Some(lines) if asking => lines.recv().await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            line = line => Wake::Line(line),
            _ = self.ticks.tick(), if has_children => {
                self.look = true;
                Wake::Tick
            }
        }
    }

    pub(super) async fn answer(
        &mut self,
        line: Option<String>,
        engine: &Engine,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let Some(mut question) = self.asking.take() else { return Ok(()) };
        let Some(line) = line else {
            self.can_ask = false;
            progress.show();
            self.tell_how(&question.approval, progress);
            return Ok(());
        };
        match (question.decision, decision(&line)) {
            (Some(decision), _) => {
                return self.decide(&question.approval, decision, line.trim(), engine, progress).await;
            }
            (None, Some(decision)) => {
                question.decision = Some(decision);
                output::ask("comment:");
            }
            (None, None) => output::ask("approve? [y/n]"),
        }
        self.asking = Some(question);
        Ok(())
    }

    async fn decide(
        &mut self,
        approval: &ApprovalId,
        decision: Decision,
        comment: &str,
        engine: &Engine,
        progress: &Progress,
    ) -> Result<(), Failure> {
        progress.show();
        self.look = true;
        match engine.decide(approval, decision, &settings::user(), comment).await {
            Ok(_) => Ok(()),
            Err(EngineError::Refused(refusal @ Refusal::NotPending)) => {
                progress.tell(&refusal.to_string());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn waits(run: &Run) -> impl Iterator<Item = &Waiting> {
    let waiting = run.nodes.iter().filter(|node| node.state == NodeState::Waiting);
    waiting.filter_map(|node| node.wait.as_deref())
}

fn wanted(record: &ApprovalRecord, root: RunId) -> String {
    let by = record.approver.as_ref().map_or(String::new(), |approver| format!(" by {approver}"));
    let prompt = record.prompt.as_ref().map_or(String::new(), |prompt| format!(": {prompt}"));
    let child = if record.run == root { String::new() } else { format!(" of {}", record.run) };
    format!("{}{child} waits for approval {}{by}{prompt}", record.node, record.approval)
}
