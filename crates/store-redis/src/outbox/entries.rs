//! Reads the entries of the outbox, and separates those that can be archived from those that cannot.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use switchyard_core::run::{Event, EventKind};
use switchyard_core::{RunId, Timestamp};

/// Incarnations of runs. A run can have several: each time it is rebuilt, a new one begins.
pub(crate) type Incarnations = HashSet<(RunId, u64)>;

/// Entries as Redis stores them. Fields may be anything, also not text.
pub(crate) type RawEntries = Vec<(String, Vec<(Vec<u8>, Vec<u8>)>)>;

/// The age of the first of these entries by the server's clock, from which the ids of entries are made.
pub(crate) fn waited(oldest: &RawEntries, (seconds, micros): (u64, u64)) -> Duration {
    let began = oldest.first().and_then(|(id, _)| id.split_once('-')?.0.parse::<u64>().ok());
    Duration::from_millis(began.map_or(0, |began| (seconds * 1_000 + micros / 1_000).saturating_sub(began)))
}

/// The events of one change: they are archived together.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// The id of the last stream entry of this change.
    pub(crate) id: String,
    /// The change continues in the next stream entry.
    more: bool,
    pub(crate) events: Vec<Event>,
    /// The incarnation of each run that these events belong to.
    pub(crate) incarnations: HashMap<RunId, u64>,
    unreadable: Option<Unreadable>,
}

/// The reason why an entry cannot be archived, and the entry's content.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) reason: String,
    pub(crate) content: String,
}

impl Entry {
    /// The run of the events, if all are of one run.
    pub(crate) fn only_run(&self) -> Option<RunId> {
        let mut runs = self.incarnations.keys();
        runs.next().filter(|_| runs.next().is_none()).copied()
    }

    pub(crate) fn incarnations(&self) -> impl Iterator<Item = (RunId, u64)> {
        self.incarnations.iter().map(|(run, incarnation)| (*run, *incarnation))
    }

    /// Whether the entry has events of one of these incarnations.
    pub(crate) fn is_of(&self, incarnations: &Incarnations) -> bool {
        self.incarnations().any(|incarnation| incarnations.contains(&incarnation))
    }

    /// When the entry was appended, by the server's clock.
    pub(crate) fn at(&self) -> Timestamp {
        let millis = self.id.split('-').next().and_then(|millis| millis.parse().ok());
        Timestamp::from_millis(millis.unwrap_or(0))
    }

    /// The entry as text for people. Only the beginning is ever shown.
    pub(crate) fn content(&self) -> String {
        let line = |event: &Event| {
            let body = serde_json::to_string(&event.kind).unwrap_or_default();
            format!("{} {} {} {body}", event.run, event.seq, event.at.as_millis())
        };
        self.events.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Merges the next entry of the same change into this one.
    fn absorb(&mut self, next: Self) {
        self.id = next.id;
        self.more = next.more;
        self.events.extend(next.events);
        self.incarnations.extend(next.incarnations);
        self.unreadable = self.unreadable.take().or(next.unreadable);
    }
}

/// Decodes entries in the order of the stream. `whole` says that the stream has no more entries after them.
pub(crate) fn read(raw: RawEntries, whole: bool) -> Vec<Entry> {
    let mut entries = Vec::with_capacity(raw.len());
    for (id, fields) in raw {
        read_entry(&id, &fields, &mut entries);
    }
    join(entries, whole)
}

/// Merges the entries of each change into one. Leaves out a change whose last entry has not been read yet.
fn join(entries: Vec<Entry>, whole: bool) -> Vec<Entry> {
    let mut joined = Vec::with_capacity(entries.len());
    let mut open: Option<Entry> = None;
    for entry in entries {
        let entry = match open.take() {
            Some(mut begun) => {
                begun.absorb(entry);
                begun
            }
            None => entry,
        };
        if entry.more { open = Some(entry) } else { joined.push(entry) }
    }
    // All entries of a change are appended together: at the end of the stream, none can follow.
    if let Some(mut entry) = open.filter(|_| whole) {
        let (reason, content) = ("its end is missing".to_owned(), entry.content());
        entry.unreadable.get_or_insert(Unreadable { reason, content });
        joined.push(entry);
    }
    joined
}

/// The reason why an event cannot be decoded, and its incarnation, if that can be decoded.
struct Garbled {
    incarnation: Option<(RunId, u64)>,
    reason: String,
}

/// Decodes an entry of the stream. If its runs are independent of each other (`apart`), each gets an entry of its own.
fn read_entry(id: &str, fields: &[(Vec<u8>, Vec<u8>)], entries: &mut Vec<Entry>) {
    let flag = |name: &[u8]| fields.iter().any(|(header, _)| header == name);
    let (more, apart) = (flag(b"more"), flag(b"apart"));
    let mut of_run: HashMap<Option<RunId>, Entry> = HashMap::new();
    let mut order = Vec::new();
    let mut garbled = Vec::new();
    for (header, body) in fields.iter().filter(|(header, _)| header != b"more" && header != b"apart") {
        match read_event(header, body) {
            Ok((event, incarnation)) => {
                let group = (apart && !more).then_some(event.run);
                let entry = of_run.entry(group).or_insert_with(|| {
                    order.push(group);
                    Entry { id: id.to_owned(), more, ..Entry::default() }
                });
                entry.incarnations.insert(event.run, incarnation);
                entry.events.push(event);
            }
            Err(found) => garbled.push(found),
        }
    }
    let mut found: Vec<Entry> = order.iter().filter_map(|group| of_run.remove(group)).collect();
    // An event without a readable run may belong to any run of the entry.
    if garbled.iter().any(|garbled| garbled.incarnation.is_none()) {
        let all = found.into_iter().reduce(|mut all, entry| {
            all.absorb(entry);
            all
        });
        found = vec![all.unwrap_or_else(|| Entry { id: id.to_owned(), more, ..Entry::default() })];
    }
    for Garbled { incarnation, reason } in garbled {
        let of_it = |entry: &&mut Entry| {
            incarnation.is_none_or(|(run, _)| entry.incarnations.contains_key(&run) || !apart)
        };
        let at = match found.iter_mut().find(of_it) {
            Some(entry) => entry,
            None => {
                found.push(Entry { id: id.to_owned(), more, ..Entry::default() });
                let last = found.len() - 1;
                &mut found[last]
            }
        };
        at.incarnations.extend(incarnation);
        at.unreadable.get_or_insert_with(|| Unreadable { reason, content: shown(fields) });
    }
    if found.is_empty() {
        found.push(Entry { id: id.to_owned(), more, ..Entry::default() });
    }
    entries.extend(found);
}

fn read_event(header: &[u8], body: &[u8]) -> Result<(Event, u64), Garbled> {
    let garbled = |reason: String| Garbled { incarnation: None, reason };
    let text = std::str::from_utf8(header).map_err(|_| garbled("a field is no text".to_owned()))?;
    let words: Vec<&str> = text.split(' ').collect();
    let parsed = match words[..] {
        [run, seq, at, incarnation] => run
            .parse::<RunId>()
            .ok()
            .zip(seq.parse::<u64>().ok())
            .zip(at.parse().ok())
            .zip(incarnation.parse::<u64>().ok()),
        _ => None,
    };
    let Some((((run, seq), at), incarnation)) = parsed else {
        let begin: String = text.chars().take(80).collect();
        return Err(garbled(format!("`{begin}` is not a run, a seq, a time and a life")));
    };
    let kind: EventKind = serde_json::from_slice(body).map_err(|error| Garbled {
        incarnation: Some((run, incarnation)),
        reason: format!("event {seq} of {run} cannot be read: {error}"),
    })?;
    Ok((Event { run, seq, at: Timestamp::from_millis(at), kind }, incarnation))
}

/// An entry as text; bytes that are not text are replaced.
fn shown(fields: &[(Vec<u8>, Vec<u8>)]) -> String {
    let line = |(header, body): &(Vec<u8>, Vec<u8>)| {
        format!("{} {}", String::from_utf8_lossy(header), String::from_utf8_lossy(body))
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Entries, sorted by whether they can be archived.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// Entries that can be archived, judging by their content.
    pub(crate) good: Vec<Entry>,
    pub(crate) unreadable: Vec<(Entry, Unreadable)>,
    /// Incarnations that lack events which cannot be archived: their runs must be rebuilt from the archive.
    pub(crate) broken: Incarnations,
}

/// Decodes a field of the hash of forgotten incarnations. Version 0.1 wrote the run as field and its incarnation as
/// value.
pub(crate) fn forgotten(field: &str, value: &str) -> Option<(RunId, u64)> {
    let (run, incarnation) = field.split_once(' ').unwrap_or((field, value));
    Some((run.parse().ok()?, incarnation.parse().ok()?))
}

/// Sorts entries. Unreadable entries and entries of forgotten incarnations are not good, and neither are later entries
/// of any incarnation that occurs in them.
pub(crate) fn sort_out(entries: Vec<Entry>, mut forgotten: Incarnations) -> Sorted {
    let mut sorted = Sorted::default();
    for mut entry in entries {
        let unreadable = entry.unreadable.take();
        if !entry.is_of(&forgotten) && unreadable.is_none() {
            sorted.good.push(entry);
            continue;
        }
        sorted.broken.extend(entry.incarnations().filter(|incarnation| !forgotten.contains(incarnation)));
        forgotten.extend(entry.incarnations());
        sorted.unreadable.extend(unreadable.map(|why| (entry, why)));
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: [&str; 2] = ["run_01h455vb4pex5vsknk084sn02q", "run_01h455vb4pex5vsknk084sn02r"];
    const PAUSED: &str = r#"{"run_paused":{"by":"me"}}"#;

    fn raw(fields: &[(&str, &str)]) -> RawEntries {
        let bytes = |text: &str| text.as_bytes().to_vec();
        vec![("7-0".to_owned(), fields.iter().map(|(header, body)| (bytes(header), bytes(body))).collect())]
    }

    fn sorted(raw: RawEntries) -> Sorted {
        sort_out(read(raw, true), Incarnations::new())
    }

    fn header(run: usize, seq: u64) -> String {
        format!("{} {seq} 1700000000000 3", RUN[run])
    }

    #[test]
    fn a_garbled_body_breaks_its_run_and_no_other_that_came_along() {
        let (one, next, other) = (header(0, 2), header(0, 3), header(1, 2));
        let fields = [("apart", "1"), (&one, PAUSED), (&next, "{"), (&other, PAUSED)];
        let found = sorted(raw(&fields));
        assert_eq!(found.good.iter().map(|entry| entry.events.len()).collect::<Vec<_>>(), [1]);
        assert_eq!(found.good[0].only_run(), RUN[1].parse().ok());
        assert_eq!(found.broken.iter().map(|(run, _)| run.to_string()).collect::<Vec<_>>(), [RUN[0]]);
        assert_eq!(found.unreadable.len(), 1);
        let together = sorted(raw(&fields[1..]));
        assert_eq!((together.good.len(), together.broken.len(), together.unreadable.len()), (0, 2, 1));
    }

    #[test]
    fn a_garbled_header_may_be_about_any_run_that_came_along() {
        let (one, other) = (header(0, 2), header(1, 2));
        let found = sorted(raw(&[("apart", "1"), (&one, PAUSED), ("hello", "world"), (&other, PAUSED)]));
        assert_eq!((found.good.len(), found.broken.len(), found.unreadable.len()), (0, 2, 1));
        let (_, why) = &found.unreadable[0];
        assert!(why.reason.contains("`hello` is not"), "{}", why.reason);
        assert!(why.content.contains("hello world"), "{}", why.content);
    }

    #[test]
    fn a_change_of_several_entries_is_one() {
        let (one, other) = (header(0, 2), header(1, 2));
        let mut entries = raw(&[("more", "1"), (&one, PAUSED)]);
        assert!(read(entries.clone(), false).is_empty(), "its end is still to be read");
        assert_eq!(sorted(entries.clone()).unreadable.len(), 1, "nothing is behind it");
        entries.extend(raw(&[(&other, PAUSED)]));
        let found = sorted(entries.clone());
        assert_eq!((found.good.len(), found.good[0].incarnations.len()), (1, 2));
        entries[1].1[0].1 = b"{".to_vec();
        let found = sorted(entries);
        assert_eq!((found.good.len(), found.broken.len()), (0, 2), "all of it or nothing");
    }

    #[test]
    fn what_comes_after_something_lost_is_lost() {
        let (one, next, last) = (header(0, 2), header(0, 3), header(0, 4));
        let entries = [raw(&[(&one, PAUSED)]), raw(&[(&next, "{")]), raw(&[(&last, PAUSED)])].concat();
        let found = sorted(entries);
        assert_eq!(found.good.iter().map(|entry| entry.events[0].seq).collect::<Vec<_>>(), [2]);
        assert_eq!((found.broken.len(), found.unreadable.len()), (1, 1));
    }

    #[test]
    fn every_forgotten_incarnation_of_a_run_stays_forgotten() {
        let of = |incarnation| format!("{} 2 1700000000000 {incarnation}", RUN[0]);
        let entries = [3, 4, 5].map(|incarnation| raw(&[(&of(incarnation), PAUSED)])).concat();
        let run: RunId = RUN[0].parse().expect("a run");
        let hash = [(format!("{run} 3"), "1"), (run.to_string(), "4")];
        let forgotten = hash.iter().filter_map(|(field, value)| forgotten(field, value)).collect();
        let found = sort_out(read(entries, true), forgotten);
        assert_eq!(found.good.iter().flat_map(Entry::incarnations).collect::<Vec<_>>(), [(run, 5)]);
        assert!(found.broken.is_empty(), "they were forgotten before");
    }

    #[test]
    fn an_empty_entry_is_no_reason_to_stop() {
        assert_eq!(sorted(raw(&[("apart", "1")])).good.len(), 1);
    }
}
