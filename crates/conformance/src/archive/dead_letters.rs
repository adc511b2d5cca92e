//! Dead letters: one for each node that failed for good, removed when the node starts over; and those that no event
//! created.

use std::sync::Arc;

use switchyard_core::error::NodeError;
use switchyard_core::run::{EndStatus, EventKind};
use switchyard_store::{DeadKind, DeadLetter, DeadLetters, Purge, RetentionPolicy};

use crate::archive::Backend;
use crate::archive::fixtures::{History, accepted, at, ended, run_id};

pub async fn all<B: Backend>(backend: &B) {
    a_poisoned_node_is_buried_until_it_starts_over(backend).await;
    letters_are_buried_once_and_purged(backend).await;
    letters_go_with_their_run(backend).await;
    an_entry_of_the_outbox_is_kept_with_its_beginning(backend).await;
    letters_that_say_the_same_are_a_group(backend).await;
}

fn failed(node: &str, code: &str) -> EventKind {
    let error = NodeError::permanent(code, "3 workers were lost while they held it");
    EventKind::NodeFailed { node: node.into(), attempt: 1, error }
}

async fn ids(archive: &dyn DeadLetters) -> Vec<Arc<str>> {
    archive.dead_letters(100).await.unwrap().into_iter().map(|letter| letter.id).collect()
}

async fn a_poisoned_node_is_buried_until_it_starts_over<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(1));
    history.put(&*archive, [accepted(), failed("a\0", "poisoned"), failed("b", "boom")]).await;
    let mut other = History::of(run_id(2));
    other.put(&*archive, [accepted(), failed("a\0", "poisoned")]).await;
    let letters = archive.dead_letters(100).await.unwrap();
    let [newest, letter] = &letters[..] else { panic!("{letters:?}") };
    assert_eq!((newest.run_id, letter.run_id, letter.seq), (Some(run_id(2)), Some(run_id(1)), Some(2)));
    assert_eq!((letter.node.as_deref(), letter.kind, letter.at), (Some("a\0"), DeadKind::Task, at(2)));
    assert_eq!(&*letter.reason, "3 workers were lost while they held it");
    assert_eq!(archive.dead_letter(&letter.id).await.unwrap().as_ref(), Some(letter));
    assert_eq!(archive.dead_letters(1).await.unwrap(), std::slice::from_ref(newest));

    let retried = EventKind::RunRetried { by: "ada".into(), reset: vec!["a\0".into()], operation: None };
    history.put(&*archive, [ended(EndStatus::Failed), retried.clone()]).await;
    drop(archive);
    let archive = backend.open(&location).await;
    assert_eq!(ids(&*archive).await, std::slice::from_ref(&newest.id), "that of the other run stays");
    let again = [failed("a\0", "poisoned"), ended(EndStatus::Failed), retried, failed("a\0", "poisoned")];
    history.put(&*archive, again).await;
    assert_eq!(ids(&*archive).await.len(), 2, "it was revived in between");
}

async fn letters_are_buried_once_and_purged<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let letters: Vec<DeadLetter> =
        (1..=4).map(|n| DeadLetter::of_signal(&format!("{n}\0"), "no JSON", at(n))).collect();
    for letter in letters.iter().chain(&letters) {
        archive.bury(letter.clone()).await.unwrap();
    }
    drop(archive);
    let archive = backend.open(&location).await;
    let listed = |letter: &DeadLetter| DeadLetter { signal: None, ..letter.clone() };
    let newest_first: Vec<DeadLetter> = letters.iter().rev().map(listed).collect();
    assert_eq!(archive.dead_letters(100).await.unwrap(), newest_first, "a list has no signals");
    assert_eq!(archive.dead_letter(&letters[0].id).await.unwrap().as_ref(), Some(&letters[0]));
    assert_eq!(archive.dead_letter("dead_0").await.unwrap(), None);

    assert_eq!(archive.purge(Purge::One("dead_0".into())).await.unwrap(), 0);
    let (first, again) = (letters[0].clone(), DeadLetter::of_signal("1\0", "again", at(9)));
    archive.bury(again.clone()).await.unwrap();
    assert_eq!(archive.dead_letters(1).await.unwrap(), [listed(&again)], "it is as old as the last time");
    assert_eq!(archive.purge(Purge::Seen(first.id.clone(), first.at)).await.unwrap(), 0);
    archive.bury(first).await.unwrap();
    assert_eq!(archive.purge(Purge::One(letters[3].id.clone())).await.unwrap(), 1);
    assert_eq!(archive.purge(Purge::Before(at(2))).await.unwrap(), 1);
    assert_eq!(archive.dead_letters(100).await.unwrap(), newest_first[1..3]);
    assert_eq!(archive.purge(Purge::All).await.unwrap(), 2);
    assert_eq!(archive.dead_letters(100).await.unwrap(), []);
}

async fn letters_go_with_their_run<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mut history = History::of(run_id(1));
    history.put(&*archive, [accepted(), failed("a", "poisoned"), ended(EndStatus::Failed)]).await;
    archive.bury(DeadLetter::of_signal("x", "no JSON", at(1))).await.unwrap();
    let policy = RetentionPolicy { keep_runs: Some(0), ..RetentionPolicy::default() };
    assert_eq!(archive.retain(&policy, at(100), 10).await.unwrap(), 1);
    assert_eq!(archive.dead_letters(100).await.unwrap().len(), 1, "that of the signal stays");
}

async fn an_entry_of_the_outbox_is_kept_with_its_beginning<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let content = "hello \0 wörld ".repeat(100_000);
    let letter = DeadLetter::of_outbox_entry("7-0", Some(run_id(1)), "no event", &content, at(7));
    archive.bury(letter.clone()).await.unwrap();
    archive.bury(letter.clone()).await.unwrap();
    let listed = DeadLetter { excerpt: None, ..letter.clone() };
    assert_eq!(archive.dead_letters(10).await.unwrap(), [listed], "a list has no excerpts");
    assert_eq!(archive.dead_letter(&letter.id).await.unwrap().as_ref(), Some(&letter));
    assert!(
        letter.excerpt.is_some_and(|excerpt| excerpt.len() < 1_100 && content.starts_with(&excerpt[..900]))
    );
}

async fn letters_that_say_the_same_are_a_group<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    assert!(archive.dead_letter_groups(10).await.unwrap().is_empty());
    for n in 1..=2 {
        History::of(run_id(n)).put(&*archive, [accepted(), failed("a", "poisoned")]).await;
    }
    History::of(run_id(3))
        .put(&*archive, [accepted(), ended(EndStatus::Failed), failed("b", "poisoned")])
        .await;
    let groups = archive.dead_letter_groups(10).await.unwrap();
    let [larger, smaller] = &groups[..] else { panic!("{groups:?}") };
    assert_eq!((larger.letters, larger.node.as_deref(), larger.kind), (2, Some("a"), DeadKind::Task));
    assert_eq!((larger.first_at, larger.last_at), (at(2), at(2)));
    assert_eq!(&*larger.reason, "3 workers were lost while they held it");
    assert!(archive.dead_letter(&larger.example).await.unwrap().is_some());
    assert_eq!((smaller.letters, smaller.node.as_deref(), smaller.last_at), (1, Some("b"), at(3)));
    assert_eq!(archive.dead_letter_groups(1).await.unwrap(), std::slice::from_ref(larger));
}
