//! Translates a decision of the core into Redis commands.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use switchyard_core::in_flight::{ChildToCancel, Decided, QueuedToken, StoredRun, TimerKey, band};
use switchyard_core::ir::{Ir, NodeIx};
use switchyard_core::run::{Event, EventKind, NodeState, Phase, Run, WaitFor, Waiting};
use switchyard_core::{ApprovalId, Hash, RunId};
use switchyard_store::StoreError;

use super::commit::{Commit, Staged, WORDS_MAX};
use super::load::Loaded;
use super::ready::{self, TOKENS_AT_ONCE};
use super::{Due, ReadSet, cancels, planned};
use crate::keys::{GROUP, Keys};
use crate::record::{Fields, Record, Stored, Written, json, timer_name};
use crate::timers::in_ms;

struct Planner<'a> {
    keys: &'a Keys,
    read_set: &'a ReadSet,
    loaded: &'a Loaded,
    given: &'a Decided,
    /// The incarnation of runs that begin with this decision.
    incarnation: u64,
    commit: Commit,
}

pub(super) fn plan(
    keys: &Keys,
    read_set: &ReadSet,
    loaded: &Loaded,
    given: Decided,
    events: &[Event],
    graphs: &[Arc<Ir>],
) -> Result<Commit, StoreError> {
    let incarnation = loaded.incarnation();
    let mut planner =
        Planner { keys, read_set, loaded, given: &given, incarnation, commit: Commit::default() };
    let mut ids: BTreeSet<RunId> = loaded.runs.keys().copied().collect();
    ids.extend(given.stored_runs.keys());
    ids.extend(events.iter().map(|event| event.run));
    for &id in &ids {
        planner.run(id, events)?;
    }
    planner.concurrency_keys(&ids);
    planner.approvals();
    planner.tokens(&given.tokens);
    planner.cancels(&given.to_cancel);
    planner.events(events)?;
    if let Some(due) = &read_set.due {
        planner.done_with(due);
        ids.extend(&read_set.runs);
    }
    if !planner.commit.commands.is_empty() {
        planner.commit.commands.extend(read_set.with.iter().cloned());
        planner.commit.expected.extend(read_set.given.iter().cloned());
        planner.expectations(&ids);
        planner.graphs(graphs);
    }
    Ok(planner.commit)
}

impl Planner<'_> {
    /// Makes the commit depend on these runs being as they were read, or still absent.
    fn expectations(&mut self, ids: &BTreeSet<RunId>) {
        for &id in ids {
            let key = self.keys.run(id);
            let (seq, generation) = match (self.loaded.runs.get(&id), self.loaded.passed.get(&id)) {
                (Some(stored), _) => {
                    (stored.stored_run.run.seq.to_string(), stored.stored_run.generation.to_string())
                }
                (None, Some(passed)) => (passed.seq.clone(), passed.generation.clone()),
                (None, None) => (String::new(), String::new()),
            };
            self.commit.expect(key.clone(), "seq", &seq);
            self.commit.expect(key, "gen", &generation);
        }
    }

    /// Adds the graphs of runs that are on another graph than before, and of the children that they will start.
    fn graphs(&mut self, planned_for: &[Arc<Ir>]) {
        let mut needed: BTreeMap<Hash, Arc<Ir>> = BTreeMap::new();
        for (id, after) in &self.given.stored_runs {
            let before = self.loaded.runs.get(id).map(|stored| &stored.stored_run.run);
            if before.is_some_and(|before| *before == after.run) {
                continue;
            }
            if before.is_none_or(|before| before.ir.hash != after.run.ir.hash) {
                needed.insert(after.run.ir.hash, after.run.ir.clone());
            }
            for definition in planned(&after.run) {
                let ir = planned_for.iter().find(|ir| ir.hash == definition);
                needed.extend(ir.map(|ir| (definition, ir.clone())));
            }
        }
        self.commit.graphs = needed.into_values().collect();
    }

    fn incarnation_of(&self, id: RunId) -> u64 {
        self.loaded.runs.get(&id).map_or(self.incarnation, |stored| stored.incarnation)
    }

    fn run(&mut self, id: RunId, events: &[Event]) -> Result<(), StoreError> {
        let (loaded, given) = (self.loaded, self.given);
        match (loaded.runs.get(&id), given.stored_runs.get(&id)) {
            (Some(before), Some(after)) if before.stored_run == *after => {}
            (before, Some(after)) => self.write(id, before, after)?,
            (before, None) => self.end(id, before, events),
        }
        Ok(())
    }

    fn write(&mut self, id: RunId, before: Option<&Stored>, after: &StoredRun) -> Result<(), StoreError> {
        let mut entries = before.map(|before| self.keep_entries(before, Some(after))).unwrap_or_default();
        let named = self.read_set.entries.iter();
        entries.extend(named.filter_map(|(node, entry)| Some((after.run.ir.find(node)?, entry.clone()))));
        let written = Written { stored_run: after, incarnation: self.incarnation_of(id), entries: &entries };
        let record = Record::write(written)?;
        let hashes = [self.keys.run(id), self.keys.dag(id), self.keys.context(id), self.keys.operations(id)];
        self.streams_of_priority(before, after);
        if before.is_none() {
            if let Some(passed) = self.loaded.passed.get(&id) {
                self.commit.on("UNLINK", &hashes[0], hashes[1..].iter().cloned());
                self.unlink_children(id, passed.with_children.iter());
            }
            self.commit.on("SADD", &self.keys.runs(), [id.to_string()]);
            if let Some(key) = &after.run.accepted.idempotency {
                let name = self.keys.idempotency(&key.key);
                let fields = ["run", &id.to_string(), "body", &key.body.to_string()].map(str::to_owned);
                self.commit.on("HSET", &name, fields);
                self.commit.on("PERSIST", &name, []);
            }
        }
        let empty = Record::default();
        let old = before.map_or(&empty, |before| &before.record);
        for (key, old, new) in [
            (&hashes[0], &old.run, &record.run),
            (&hashes[1], &old.dag, &record.dag),
            (&hashes[2], &old.context, &record.context),
        ] {
            self.difference(key, old, new);
        }
        let known = before.map(|before| &before.stored_run.run.operations);
        let new =
            after.run.operations.iter().filter(|(id, _)| known.is_none_or(|known| !known.contains_key(*id)));
        let new: Vec<String> = new.flat_map(|(id, command)| [id.to_string(), command.to_string()]).collect();
        self.commit.on_many("HSET", &hashes[3], &new);
        self.children(id, before, after, &record);
        self.moments(id, before.map(|before| &before.stored_run), Some(after));
        Ok(())
    }

    /// Registers the streams that a run uses because of its priority. Publishing its graph has registered the others.
    fn streams_of_priority(&mut self, before: Option<&Stored>, after: &StoredRun) {
        let run = &after.run;
        let known = before.is_some_and(|before| before.stored_run.run.ir.hash == run.ir.hash);
        if known || run.accepted.priority.is_none() {
            return;
        }
        let inheriting = run.ir.indices().filter(|ix| run.ir.node(*ix).inherits_priority);
        let stream = |ix| self.keys.tasks(&run.ir.node(ix).queue, band(run.priority(ix)));
        let streams: BTreeSet<String> = inheriting.map(stream).collect();
        let streams: Vec<String> = streams.into_iter().collect();
        self.commit.on_many("SADD", &self.keys.streams(), &streams);
    }

    /// Writes the changed fields of a hash, or replaces the hash if there are too many of them for one command.
    fn difference(&mut self, key: &str, old: &Fields, new: &Fields) {
        let gone: Vec<String> = old.keys().filter(|field| !new.contains_key(*field)).cloned().collect();
        let changed = changed(old, new);
        if gone.len() + changed.len() > WORDS_MAX {
            return self.commit.replace(self.keys, key, new);
        }
        self.commit.on_many("HDEL", key, &gone);
        self.commit.on_many("HSET", key, &changed);
    }

    /// Writes the changed children of a run's nodes. If a node is in another round than before, replaces all of them.
    fn children(&mut self, id: RunId, before: Option<&Stored>, after: &StoredRun, record: &Record) {
        let none = BTreeMap::new();
        let old = before.map_or(&none, |before| &before.record.children);
        let rounds = |run: &Run, node: &str| run.ir.find(node).map(|ix| run.node(ix).rounds);
        for (node, new) in &record.children {
            let key = self.keys.children(id, node);
            let same_round = |before: &&Stored| {
                before.record.children.contains_key(node)
                    && rounds(&before.stored_run.run, node) == rounds(&after.run, node)
            };
            match before.filter(same_round) {
                Some(before) => {
                    let changed = changed(&before.record.children[node].fields, &new.fields);
                    self.commit.on_many("HSET", &key, &changed);
                }
                None => self.commit.replace(self.keys, &key, &new.fields),
            }
        }
        self.unlink_children(id, old.keys().filter(|node| !record.children.contains_key(*node)));
    }

    fn unlink_children<'n>(&mut self, id: RunId, nodes: impl Iterator<Item = &'n String>) {
        for node in nodes {
            self.commit.on("UNLINK", &self.keys.children(id, node), []);
        }
    }

    /// Ends a run. A mark stays in Redis until the run's events are archived. A run without new events, which had ended
    /// before and was not retried after all, is removed at once.
    fn end(&mut self, id: RunId, before: Option<&Stored>, events: &[Event]) {
        let run = self.keys.run(id);
        if let Some(before) = before {
            self.keep_entries(before, None);
            self.moments(id, Some(&before.stored_run), None);
            self.unlink_children(id, before.record.children.keys());
        }
        match events.iter().rev().find(|event| event.run == id) {
            Some(last) => {
                let (seq, incarnation) = (last.seq.to_string(), self.incarnation_of(id).to_string());
                let fields = ["seq", &seq, "phase", "ended", "life", &incarnation].map(str::to_owned);
                self.commit.on("HSET", &run, fields);
                self.commit.on("SADD", &self.keys.runs(), [id.to_string()]);
                let operations = events.iter().filter(|event| event.run == id);
                for operation in operations.filter_map(|event| event.kind.operation()) {
                    let words = [operation.id.to_string(), operation.command.to_string()];
                    self.commit.on("HSET", &self.keys.operations(id), words);
                }
            }
            None if before.is_some() => {
                let others = [self.keys.dag(id), self.keys.context(id), self.keys.operations(id)];
                self.commit.on("UNLINK", &run, others);
                self.commit.on("SREM", &self.keys.runs(), [id.to_string()]);
            }
            None => {}
        }
    }

    /// The stream entries of claims that are still held. Removes the entries of the others.
    fn keep_entries(&mut self, before: &Stored, after: Option<&StoredRun>) -> BTreeMap<NodeIx, String> {
        let mut kept = BTreeMap::new();
        let run = &before.stored_run.run;
        for (ix, entry) in &before.entries {
            let spec = run.ir.node(*ix);
            let held = after.and_then(|after| {
                let ix = after.run.ir.find(&spec.id)?;
                (after.run.node(ix).state == NodeState::Running).then_some(ix)
            });
            match held {
                Some(ix) => drop(kept.insert(ix, entry.clone())),
                None => {
                    let stream = self.keys.tasks(&spec.queue, band(run.priority(*ix)));
                    self.commit.on("XACK", &stream, [GROUP.to_owned(), entry.clone()]);
                    self.commit.on("XDEL", &stream, [entry.clone()]);
                }
            }
        }
        kept
    }

    /// Writes the changed timers and leases of a run.
    fn moments(&mut self, id: RunId, before: Option<&StoredRun>, after: Option<&StoredRun>) {
        let moments = |stored_run: Option<&StoredRun>, of: fn(RunId, &StoredRun) -> DueTimes| {
            stored_run.map(|stored_run| of(id, stored_run)).unwrap_or_default()
        };
        let (old, new) = (moments(before, timers_of), moments(after, timers_of));
        if self.schedule(&self.keys.timers(), &old, &new) {
            self.commit.on("PUBLISH", &self.keys.wake(), ["timers".to_owned()]);
        }
        let (old, new) = (moments(before, leases_of), moments(after, leases_of));
        self.schedule(&self.keys.leases(), &old, &new);
    }

    /// Removes due members that the decision has handled. A lease that was extended after it was found due stays,
    /// because otherwise a worker that dies before its next heartbeat would hold the claim for ever. A timer that was
    /// set anew stays, too.
    fn done_with(&mut self, due: &Due) {
        let mut put_off = DueTimes::new();
        let leases = due.key == self.keys.leases();
        for (id, stored_run) in &self.given.stored_runs {
            put_off.extend(if leases { leases_of(*id, stored_run) } else { timers_of(*id, stored_run) });
        }
        for member in &due.members {
            match put_off.get(member) {
                Some(at) => {
                    let words = ["GT".to_owned(), at.to_string(), member.clone()];
                    self.commit.on("ZADD", &due.key, words);
                }
                None => self.commit.on("ZREM", &due.key, [member.clone()]),
            }
        }
    }

    /// Writes the changed members of a sorted set of due times. Whether any was added.
    fn schedule(&mut self, key: &str, old: &DueTimes, new: &DueTimes) -> bool {
        let gone: Vec<String> = old.keys().filter(|name| !new.contains_key(*name)).cloned().collect();
        let set: Vec<String> = new
            .iter()
            .filter(|(name, at)| old.get(*name) != Some(at))
            .flat_map(|(name, at)| [at.to_string(), name.clone()])
            .collect();
        self.commit.on_many("ZREM", key, &gone);
        self.commit.on_many("ZADD", key, &set);
        !set.is_empty()
    }

    fn concurrency_keys(&mut self, ids: &BTreeSet<RunId>) {
        let mut arrived: HashMap<&str, u64> = HashMap::new();
        let mut changed: BTreeMap<String, (u32, i64)> = BTreeMap::new();
        for &id in ids {
            let before = self.loaded.runs.get(&id).map(|stored| &stored.stored_run.run);
            let after = self.given.stored_runs.get(&id).map(|stored_run| &stored_run.run);
            let Some(concurrency) = after.or(before).and_then(|run| run.accepted.concurrency.as_ref()) else {
                continue;
            };
            let (was, is) = (before.and_then(waits_in_line), after.and_then(waits_in_line));
            let limit = concurrency.limit.max(1);
            if was == is {
                continue;
            }
            let line = self.keys.concurrency_line(&concurrency.key);
            match is {
                None => self.commit.on("ZREM", &line, [id.to_string()]),
                Some(false) => self.commit.on("ZADD", &line, ["0".to_owned(), id.to_string()]),
                Some(true) => {
                    let known = self
                        .loaded
                        .concurrency_keys
                        .get(&concurrency.key)
                        .map_or(0, |concurrency_key| concurrency_key.arrivals);
                    let arrival = arrived.entry(&concurrency.key).or_insert(known);
                    *arrival += 1;
                    self.commit.on("ZADD", &line, [arrival.to_string(), id.to_string()]);
                }
            }
            let known = self
                .loaded
                .concurrency_keys
                .get(&concurrency.key)
                .map_or(0, |concurrency_key| concurrency_key.state.limit);
            let (limits, members) = changed.entry(concurrency.key.to_string()).or_insert((known, 0));
            if was.is_none() {
                *limits = limit;
            }
            *members += i64::from(is.is_some()) - i64::from(was.is_some());
        }
        for (key, (limit, joined)) in changed {
            self.concurrency_key(&key, limit, joined, arrived.get(&*key).copied());
        }
    }

    fn concurrency_key(&mut self, key: &str, limit: u32, joined: i64, arrivals: Option<u64>) {
        let name = self.keys.concurrency_key(key);
        let known = self.loaded.concurrency_keys.get(key);
        self.commit.expect(
            name.clone(),
            "version",
            known.map_or("", |concurrency_key| &concurrency_key.version),
        );
        let members = known.map_or(0, |concurrency_key| {
            i64::from(concurrency_key.state.under_way) + concurrency_key.waiting as i64
        }) + joined;
        if members <= 0 {
            self.commit.on("DEL", &name, []);
            return;
        }
        let (limit, incarnation) = (limit.to_string(), self.incarnation.to_string());
        let mut fields = ["limit", &limit, "version", &incarnation].map(str::to_owned).to_vec();
        if let Some(arrivals) = arrivals {
            fields.extend(["arrivals".to_owned(), arrivals.to_string()]);
        }
        self.commit.on("HSET", &name, fields);
    }

    fn approvals(&mut self) {
        let open = |run: &Run| -> Vec<ApprovalId> { requests(run).map(|(id, ..)| id.clone()).collect() };
        let runs = self.loaded.runs.values();
        let before: BTreeSet<ApprovalId> = runs.flat_map(|stored| open(&stored.stored_run.run)).collect();
        let given = self.given;
        for gone in before.iter().filter(|approval| !given.approvals.contains_key(*approval)) {
            self.commit.on("DEL", &self.keys.approval(gone), []);
        }
        for stored_run in given.stored_runs.values() {
            for (approval, node, timeout_at, approver) in requests(&stored_run.run) {
                if before.contains(approval) {
                    continue;
                }
                let run = stored_run.run.id.to_string();
                let mut fields =
                    ["run_id", &run, "node_id", node, "status", "pending"].map(str::to_owned).to_vec();
                fields
                    .extend(timeout_at.into_iter().flat_map(|at| ["timeout_at".to_owned(), at.to_string()]));
                fields.extend(approver.into_iter().flat_map(|who| ["approver".to_owned(), who.to_owned()]));
                self.commit.on("HSET", &self.keys.approval(approval), fields);
            }
        }
    }

    fn tokens(&mut self, tokens: &[QueuedToken]) {
        let mut of_run: HashMap<RunId, Vec<&QueuedToken>> = HashMap::new();
        for token in tokens {
            of_run.entry(token.run).or_default().push(token);
        }
        of_run.retain(|_, tokens| tokens.len() > TOKENS_AT_ONCE);
        let direct: Vec<&QueuedToken> =
            tokens.iter().filter(|token| !of_run.contains_key(&token.run)).collect();
        self.queue(&direct);
        for tokens in of_run.values() {
            self.queue_later(tokens);
        }
    }

    /// The fields of a token: stream, id, reads, needs, when it was queued, its time limit.
    fn token(&self, token: &QueuedToken) -> Option<[String; 6]> {
        let ir = &self.given.stored_runs.get(&token.run)?.run.ir;
        let spec = ir.node(token.node);
        let reads: Vec<&str> = spec.reads.iter().map(|read| &*ir.node(*read).id).collect();
        let stream = self.keys.tasks(&token.queue, token.band);
        let at = token.queued_at.as_millis().to_string();
        let limit = in_ms(token.limit);
        Some([stream, spec.id.to_string(), reads.join(" "), spec.needs.to_string(), at, limit])
    }

    /// Puts tokens of one run on a list: there are more than one call should queue.
    fn queue_later(&mut self, tokens: &[&QueuedToken]) {
        let Some(first) = tokens.first() else { return };
        let member = ready::member(first, rand::random());
        let list = self.keys.ready_list(&member);
        let lines: Vec<String> =
            tokens.iter().filter_map(|token| Some(self.token(token)?.join("\n"))).collect();
        self.commit.staged.push(Staged::new("RPUSH", list.clone(), &lines));
        self.commit.on("PERSIST", &list, []);
        let score = first.queued_at.as_millis().to_string();
        self.commit.on("ZADD", &self.keys.ready(), [score, member.clone()]);
        self.commit.ready.push(member);
    }

    fn queue(&mut self, tokens: &[&QueuedToken]) {
        let mut added: BTreeMap<String, u32> = BTreeMap::new();
        for token in tokens {
            let Some([stream, node, reads, needs, at, limit]) = self.token(token) else { continue };
            let (run, generation) = (token.run.to_string(), token.generation.to_string());
            let fields = [
                "*",
                "run_id",
                &run,
                "node_id",
                &node,
                "gen",
                &generation,
                "reads",
                &reads,
                "needs",
                &needs,
                "at",
                &at,
                "limit",
                &limit,
            ];
            self.commit.on("XADD", &stream, fields.map(str::to_owned));
            *added.entry(stream).or_default() += 1;
        }
        for (stream, count) in added {
            self.commit.on("HINCRBY", &self.keys.queued(), [stream.clone(), count.to_string()]);
            self.commit.on("PUBLISH", &self.keys.wake(), [format!("{count} {stream}")]);
        }
    }

    /// Puts children into `wf.cancels`, from where the timer duty cancels them.
    fn cancels(&mut self, to_cancel: &[ChildToCancel]) {
        if to_cancel.is_empty() {
            return;
        }
        let members: Vec<String> = to_cancel.iter().map(cancels::member).collect();
        self.commit.on_many("SADD", &self.keys.cancels(), &members);
        self.commit.on("PUBLISH", &self.keys.wake(), ["timers".to_owned()]);
    }

    /// Appends events to the outbox: one entry, or several that are archived together.
    fn events(&mut self, events: &[Event]) -> Result<(), StoreError> {
        let mut words = Vec::new();
        for event in events {
            let accepted = matches!(event.kind, EventKind::RunAccepted(_));
            if accepted && self.read_set.archived == Some(event.run) {
                continue;
            }
            let (at, incarnation) = (event.at.as_millis(), self.incarnation_of(event.run));
            words.push(format!("{} {} {at} {incarnation}", event.run, event.seq));
            words.push(json(&event.kind)?);
        }
        let mut entries = words.chunks(WORDS_MAX).peekable();
        while let Some(entry) = entries.next() {
            let more = if entries.peek().is_some() { ["more", "1"].as_slice() } else { &[] };
            let more = more.iter().map(|word| (*word).to_owned());
            let words = std::iter::once("*".to_owned()).chain(more).chain(entry.iter().cloned());
            self.commit.on("XADD", &self.keys.outbox(), words);
        }
        Ok(())
    }
}

/// The fields that have changed, each followed by its new value.
fn changed(old: &Fields, new: &Fields) -> Vec<String> {
    let changed = new.iter().filter(|(field, value)| old.get(*field) != Some(value));
    changed.flat_map(|(field, value)| [field.clone(), value.clone()]).collect()
}

/// Due times in ms, by the name of the member in the sorted set.
type DueTimes = BTreeMap<String, i64>;

fn timers_of(id: RunId, stored_run: &StoredRun) -> DueTimes {
    let name = |key: &TimerKey| format!("{id} {}", timer_name(key, &stored_run.run.ir));
    // Names do not contain the due time: of timers with the same name, the earliest counts.
    stored_run.timers.iter().rev().map(|(at, key)| (name(key), at.as_millis())).collect()
}

fn leases_of(id: RunId, stored_run: &StoredRun) -> DueTimes {
    let ir = &stored_run.run.ir;
    let held = stored_run.leases.iter();
    held.map(|(ix, lease)| (held_by(id, lease.claim, &ir.node(*ix).id), lease.until.as_millis())).collect()
}

/// The member of `wf.leases` for a claim.
fn held_by(run: RunId, claim: u32, node: &str) -> String {
    format!("{run} {claim} {node}")
}

/// Whether a run waits for its concurrency key (true) or holds it (false). `None` before its start: it does neither.
fn waits_in_line(run: &Run) -> Option<bool> {
    run.starts_at().is_none().then_some(run.phase == Phase::Queued)
}

type Asked<'r> = (&'r ApprovalId, &'r str, Option<i64>, Option<&'r str>);

/// The approvals that a run waits for: approval, node, deadline, and who may decide.
fn requests(run: &Run) -> impl Iterator<Item = Asked<'_>> {
    run.ir.indices().filter_map(|ix| match (run.node(ix).state, run.node(ix).wait.as_deref()) {
        (NodeState::Waiting, Some(Waiting::For(WaitFor::Approval(request)))) => Some((
            &request.approval,
            &*run.ir.node(ix).id,
            request.timeout_at.map(|at| at.as_millis()),
            request.approver.as_deref(),
        )),
        _ => None,
    })
}
