//! An archive knows its identity and its position.

use crate::archive::Backend;
use crate::archive::fixtures::{History, accepted, node_started, run_id};

pub async fn all<B: Backend>(backend: &B) {
    an_archive_keeps_its_id(backend).await;
    two_archives_have_two_ids(backend).await;
    the_position_grows_with_what_is_appended(backend).await;
    a_refused_append_moves_nothing(backend).await;
}

async fn an_archive_keeps_its_id<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let mark = archive.mark().await.unwrap();
    assert!(mark.id.len() > 20, "{mark:?}");
    History::of(run_id(0)).put(&*archive, [accepted()]).await;
    drop(archive);
    let again = backend.open(&location).await.mark().await.unwrap();
    assert_eq!((again.id, again.location), (mark.id, mark.location));
}

async fn two_archives_have_two_ids<B: Backend>(backend: &B) {
    let (one, other) = (backend.location().await, backend.location().await);
    let one = backend.open(&one).await.mark().await.unwrap();
    let other = backend.open(&other).await.mark().await.unwrap();
    assert_ne!(one.id, other.id);
    assert_ne!(one.location, other.location);
}

/// The position is written from time to time, and by the first append after opening.
async fn the_position_grows_with_what_is_appended<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let mut history = History::of(run_id(0));
    let archive = backend.open(&location).await;
    let mut before = archive.mark().await.unwrap().position;
    history.put(&*archive, [accepted()]).await;
    drop(archive);
    for _ in 0..3 {
        let archive = backend.open(&location).await;
        let position = archive.mark().await.unwrap().position;
        assert!(position > before, "{position:?} after {before:?}");
        before = position;
        // The event's time may come from a clock that was set back.
        let mut event = history.next(node_started("a"));
        event.at = event.at.minus(std::time::Duration::from_secs(100_000));
        archive.append(vec![event]).await.unwrap();
        drop(archive);
    }
}

async fn a_refused_append_moves_nothing<B: Backend>(backend: &B) {
    let location = backend.location().await;
    let archive = backend.open(&location).await;
    let before = archive.mark().await.unwrap();
    archive.append(vec![History::of(run_id(0)).next(node_started("a"))]).await.unwrap_err();
    assert_eq!(archive.mark().await.unwrap(), before);
}
