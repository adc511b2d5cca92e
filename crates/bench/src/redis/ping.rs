//! A plain round trip, measured in the same round as what is compared with it.

use std::time::{Duration, Instant};

use super::Place;
use crate::report::Figures;

const PINGS: usize = 2_000;

/// Adds the median of a PING, and how many of them a step takes.
pub(crate) async fn with_ping(figures: Figures, place: &Place) -> anyhow::Result<Figures> {
    let mut connection = place.connect().await?;
    let mut times: Vec<Duration> = Vec::with_capacity(PINGS);
    for _ in 0..PINGS {
        let began = Instant::now();
        redis::cmd("PING").query_async::<()>(&mut connection).await?;
        times.push(began.elapsed());
    }
    let figures = figures.with_times("ping", &times);
    let (step, ping) = (figures.0["step_p50_ms"], figures.0["ping_p50_ms"]);
    Ok(figures.with("step_p50_in_pings", step / ping))
}
