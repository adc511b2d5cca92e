//! First pages of lists, by filter, in an archive with many runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::future::try_join_all;
use switchyard_archive_postgres::{PostgresArchive, Target, migrate, remove};
use switchyard_archive_sqlite::SqliteArchive;
use switchyard_core::error::RunError;
use switchyard_core::run::{Accepted, EndStatus, Event, EventKind, ParentLink};
use switchyard_core::{Hash, Payload, RunId, Timestamp};
use switchyard_store::{Archive, RunFilter};

use crate::Args;
use crate::report::Figures;
use crate::store::folder;

/// When the first run is created. The runs are spread over thirty days from here.
const BEGIN: i64 = 1_700_000_000_000;
const DAY: i64 = 86_400_000;
const DAYS: i64 = 30;

/// Events of one append.
const BATCH_RUNS: usize = 2_000;
/// Number of concurrent appends.
const APPENDS: usize = 4;

/// How often each page is read.
const READS: usize = 20;
const PAGE: usize = 50;

/// The filters that are measured, each with a range of a day in the middle.
const FILTERS: [(&str, &str); 12] = [
    ("all", ""),
    ("oldest_first", "order=oldest"),
    ("status", "status=failed"),
    ("statuses", "status=failed,cancelled,running"),
    ("workflow", "workflow=workflow-7"),
    ("label", "label=team=team-3"),
    ("label_rare", "label=customer=customer-4711"),
    ("parent", "parent={parent}"),
    ("schedule", "schedule=nightly"),
    ("node", "node=charge"),
    ("code", "code=timeout"),
    ("error_text", "error=\"gateway\""),
];

pub(crate) async fn measure(args: &Args) -> anyhow::Result<Figures> {
    match &args.archive {
        Some(url) => {
            let name = format!("bench_{:016x}", rand::random::<u64>());
            let target = url.parse::<Target>()?.with_schema(&name)?;
            migrate(&target).await?;
            let archive = PostgresArchive::open(target.clone()).await.context("Postgres")?;
            let figures = measure_in(args, Arc::new(archive)).await;
            remove(&target).await?;
            figures
        }
        None => {
            let folder = folder(args)?;
            let archive = SqliteArchive::open(folder.path().join("switchyard.db"))?;
            measure_in(args, Arc::new(archive)).await
        }
    }
}

async fn measure_in(args: &Args, archive: Arc<dyn Archive>) -> anyhow::Result<Figures> {
    let filling = Instant::now();
    fill(&*archive, args.lists_runs).await?;
    let filled = filling.elapsed();
    let mut figures = Figures::default()
        .with("runs", args.lists_runs as f64)
        .with("fill_runs_per_s", args.lists_runs as f64 / filled.as_secs_f64());
    let middle = Timestamp::from_millis(BEGIN + DAYS / 2 * DAY);
    let range = format!("created_after={middle} created_before={}", middle.plus(Duration::from_secs(86_400)));
    let parent = run_id(args.lists_runs / 2 / 100 * 100, args.lists_runs);
    for (name, text) in FILTERS {
        let text = text.replace("{parent}", &parent.to_string());
        let filter = RunFilter::parse(&format!("{text} {range}"), middle)?;
        let times = read(&*archive, &RunFilter { limit: PAGE, ..filter }).await?;
        figures = figures.with_times(name, &times);
    }
    let ended = RunFilter::parse(&range.replace("created", "ended"), middle)?;
    let times = read(&*archive, &RunFilter { limit: PAGE, ..ended }).await?;
    figures = figures.with_times("ended", &times);
    let counted = RunFilter::parse(&format!("status=failed {range}"), middle)?;
    let begun = Instant::now();
    archive.count_runs(&counted, Some(switchyard_store::COUNTED_MAX)).await?;
    Ok(figures.with("count_ms", begun.elapsed().as_secs_f64() * 1e3))
}

async fn read(archive: &dyn Archive, filter: &RunFilter) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(READS);
    for _ in 0..READS {
        let begun = Instant::now();
        archive.runs(filter).await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

async fn fill(archive: &dyn Archive, runs: usize) -> anyhow::Result<()> {
    let mut first = 0;
    while first < runs {
        let batches = (0..APPENDS).map(|n| first + n * BATCH_RUNS).filter(|start| *start < runs);
        let appends = batches.map(|start| {
            let events = (start..runs.min(start + BATCH_RUNS)).flat_map(|n| history(n, runs)).collect();
            archive.append(events)
        });
        try_join_all(appends).await?;
        first += APPENDS * BATCH_RUNS;
    }
    Ok(())
}

fn run_id(n: usize, runs: usize) -> RunId {
    let at = BEGIN + DAYS * DAY / runs.max(1) as i64 * n as i64;
    RunId::new(Timestamp::from_millis(at), (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15), 0)
}

/// The events of a run. One in ten fails, one in fifty is cancelled, one in a hundred does not end; one in a hundred
/// is the parent of the next ten.
fn history(n: usize, runs: usize) -> Vec<Event> {
    let run = run_id(n, runs);
    let mut kinds = vec![EventKind::RunAccepted(Box::new(accepted(n, runs)))];
    kinds.extend(end(n));
    let event = |(kind, seq): (EventKind, u64)| Event {
        run,
        seq,
        at: run.at().plus(Duration::from_secs(seq - 1)),
        kind,
    };
    kinds.into_iter().zip(1..).map(event).collect()
}

fn accepted(n: usize, runs: usize) -> Accepted {
    let labels = [("team", n % 10), ("customer", n % 10_000), ("env", n % 3)];
    let labels = labels.map(|(key, value)| (key.into(), format!("{key}-{value}").into()));
    let parent = (1..=10).contains(&(n % 100)).then(|| {
        let run = run_id(n / 100 * 100, runs);
        ParentLink { run, node: "each".into(), index: (n % 100) as u32, depth: 1 }
    });
    Accepted {
        labels: labels.into(),
        parent,
        schedule: n.is_multiple_of(97).then(|| "nightly".into()),
        ..Accepted::plain(format!("workflow-{}", n % 50).into(), Hash::of(b"bench"), Payload::null())
    }
}

fn end(n: usize) -> Option<EventKind> {
    let error = |node: &str, code: &str, message: &str| {
        Some(RunError { node: Some(node.into()), attempt: Some(1), ..RunError::of_run(code, message) })
    };
    let (status, error) = match n {
        _ if n % 100 == 99 => return None,
        _ if n % 50 == 25 => (EndStatus::Cancelled, None),
        _ if n % 30 == 5 => (EndStatus::Failed, error("charge", "timeout", "no answer within 30s")),
        _ if n % 15 == 7 => (EndStatus::Failed, error("fetch", "http_status", "503 Gateway Timeout")),
        _ => (EndStatus::Succeeded, None),
    };
    Some(EventKind::RunEnded { status, output: Payload::null(), error })
}
