//! The raw cost of making one small write durable: the floor under every durable step.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::Args;
use crate::report::Figures;
use crate::store::folder;

const SYNCS: usize = 300;
const PAGE: [u8; 4096] = [7; 4096];

pub(crate) fn sync_latency(args: &Args) -> anyhow::Result<Figures> {
    let folder = folder(args)?;
    let mut file = std::fs::File::create(folder.path().join("sync"))?;
    let mut times: Vec<Duration> = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begun = Instant::now();
        file.write_all(&PAGE)?;
        file.sync_all()?;
        times.push(begun.elapsed());
    }
    Ok(Figures::default().with_times("sync", &times))
}
