//! Approvals and signals that a run waits for: asks for approvals on a terminal, and otherwise prints the commands.

use std::collections::HashSet;
use std::time::Duration;

use switchyard_api::{Approval, Event, RunView, Wait};
use switchyard_core::run::Decision;
use switchyard_core::{ApprovalId, RunId};
use tokio::sync::mpsc;
use tokio::time::Interval;

use super::How;
use super::typed::{decision, read_lines};
use crate::errors::Failure;
use crate::output;
use crate::progress::Progress;
use crate::settings;
use crate::target::Target;

/// How often child runs are checked for approvals: their events are not followed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Prompter<'a> {
    how: How<'a>,
    run: RunId,
    /// An event may have opened an approval.
    look: bool,
    has_children: bool,
    told: HashSet<ApprovalId>,
    asking: Option<Question>,
    /// Lines from the terminal; `None` before the first question, and after the terminal was closed.
    lines: Option<mpsc::UnboundedReceiver<String>>,
    can_ask: bool,
    ticks: Interval,
}

/// Why [`Prompter::next`] returned.
#[derive(Debug)]
pub(super) enum Wake {
    /// A line from the terminal; `None` when no more can come.
    Line(Option<String>),
    Tick,
}

/// The open question on the terminal.
#[derive(Debug)]
struct Question {
    approval: ApprovalId,
    /// The decision; once it is known, the prompter asks for the comment.
    decision: Option<Decision>,
}

impl<'a> Prompter<'a> {
    pub(super) fn new(how: How<'a>, run: &RunView) -> Self {
        let waits = |what: &Wait| run.nodes.0.iter().any(|(_, node)| node.waits.as_ref() == Some(what));
        let has_children = waits(&Wait::Children);
        Self {
            how,
            run: run.run_id,
            look: waits(&Wait::Approval) || has_children,
            has_children,
            told: HashSet::new(),
            asking: None,
            lines: None,
            can_ask: how.settings.can_ask(),
            ticks: tokio::time::interval(LOOK_EVERY),
        }
    }

    /// Reports the waits of a run that began before it was followed.
    pub(super) fn tell_standing(&self, run: &RunView, target: &dyn Target, progress: &Progress) {
        for (id, node) in &run.nodes.0 {
            if let Some(Wait::Signal { name }) = &node.waits {
                progress.tell(&format!("{id} waits for signal `{name}`"));
                self.tell_signal(name, target, progress);
            }
        }
    }

    pub(super) fn note(&mut self, event: &Event, target: &dyn Target, progress: &Progress) {
        match &*event.kind {
            "node_waiting" => {
                let on = event.field("on");
                self.look |= !on["approval"].is_null();
                self.has_children |= !on["children"].is_null();
                if let Some(name) = on["signal"]["name"].as_str() {
                    self.tell_signal(name, target, progress);
                }
            }
            // The approval's time-out may have decided it while the question was open.
            "approval_decided" => self.withdraw(event.text("approval").unwrap_or_default(), progress),
            _ => {}
        }
    }

    fn tell_signal(&self, name: &str, target: &dyn Target, progress: &Progress) {
        let send = target.command(&format!("runs signal {} {name}", self.run));
        progress.hint(&self.how_to(&send, "", target));
    }

    /// The command that ends the wait: at once if a server executes the run, otherwise after this process has stopped.
    fn how_to(&self, command: &str, or: &str, target: &dyn Target) -> String {
        if target.is_worked_at() {
            return format!("{command}{or}");
        }
        format!("stop with Ctrl-C, then {command}{or}, then {}", self.how.resume(target, self.run))
    }

    fn withdraw(&mut self, approval: &str, progress: &Progress) {
        if self.asking.as_ref().is_some_and(|question| question.approval.as_str() == approval) {
            self.asking = None;
            output::tell("");
            progress.show();
        }
        self.look = true;
    }

    /// Finds approvals that this run, or a run that it started, waits for.
    pub(super) async fn look(&mut self, target: &dyn Target, progress: &Progress) -> Result<(), Failure> {
        if !std::mem::take(&mut self.look) || self.asking.is_some() {
            return Ok(());
        }
        for record in target.approvals(None, false).await? {
            if self.told.contains(&record.approval) || !self.is_ours(record.run, target).await? {
                continue;
            }
            self.told.insert(record.approval.clone());
            progress.tell(&wanted(&record, self.run));
            if self.can_ask {
                return self.ask(&record, target, progress).await;
            }
            self.tell_how(&record.approval, target, progress);
        }
        Ok(())
    }

    async fn is_ours(&self, mut run: RunId, target: &dyn Target) -> Result<bool, Failure> {
        while run != self.run {
            match target.run(run, None).await?.parent {
                Some(parent) => run = parent,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn tell_how(&self, approval: &ApprovalId, target: &dyn Target, progress: &Progress) {
        let decide = target.command(&format!("approvals approve {approval}"));
        progress.hint(&self.how_to(&decide, " (or reject)", target));
    }

    async fn ask(
        &mut self,
        record: &Approval,
        target: &dyn Target,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let shown = target.approval(&record.approval).await?.payload.unwrap_or_default();
        progress.hide();
        if !shown.is_null() {
            output::tell(&serde_json::to_string_pretty(&shown).unwrap_or_default());
        }
        let lines = self.lines.get_or_insert_with(read_lines);
        // Lines typed before the question are not answers to it.
        while lines.try_recv().is_ok() {}
        output::ask("approve? [y/n]");
        self.asking = Some(Question { approval: record.approval.clone(), decision: None });
        Ok(())
    }

    /// Returns when the user has answered the question, or when the next check of the child runs is due.
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
        target: &dyn Target,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let Some(mut question) = self.asking.take() else { return Ok(()) };
        let Some(line) = line else {
            self.can_ask = false;
            progress.show();
            self.tell_how(&question.approval, target, progress);
            return Ok(());
        };
        match (question.decision, decision(&line)) {
            (Some(decision), _) => {
                return self.decide(&question.approval, decision, line.trim(), target, progress).await;
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
        target: &dyn Target,
        progress: &Progress,
    ) -> Result<(), Failure> {
        progress.show();
        self.look = true;
        match target.decide(approval, decision, &settings::user(), comment).await {
            Ok(_) => Ok(()),
            Err(failure) => match failure.refusal() {
                Some(why) => {
                    progress.tell(why);
                    Ok(())
                }
                None => Err(failure),
            },
        }
    }
}

fn wanted(record: &Approval, root: RunId) -> String {
    let by = record.approver.as_ref().map_or(String::new(), |approver| format!(" by {approver}"));
    let prompt = record.prompt.as_ref().map_or(String::new(), |prompt| format!(": {prompt}"));
    let child = if record.run == root { String::new() } else { format!(" of {}", record.run) };
    format!("{}{child} waits for approval {}{by}{prompt}", record.node, record.approval)
}
