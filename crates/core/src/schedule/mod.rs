//! Schedules: when Switchyard starts a workflow by itself, and what it does about ticks that were missed.
//!
//! Pure: the current time is an argument. A start is named by its tick, so that several servers, or one that crashed
//! in between, start it once.

mod timetable;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::Hash;
use crate::{Labels, Payload, Timestamp};

pub use timetable::Timetable;

/// A tick that is started later than this has been missed.
pub const LATE_AFTER: Duration = Duration::from_secs(60);

/// How far back the newest tick is searched, shortest first: a schedule with seconds has many ticks in a day.
const SKIP_TO: [Duration; 3] =
    [Duration::from_secs(60), Duration::from_secs(60 * 60), Duration::from_secs(12 * 60 * 60)];

/// How many ticks one pass catches up on, or one backfill starts.
pub const TICKS_MAX: usize = 1_000;

/// A schedule as its author wrote it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    pub name: Arc<str>,
    /// A registered workflow; its newest version, unless one is given.
    pub workflow: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    pub input: Payload,
    /// One expression a line: five fields (minute, hour, day of month, month, day of week), six with the second in
    /// front, a name such as `@hourly`, or `@every 10s`.
    pub cron: Arc<str>,
    /// An IANA name: `Europe/Berlin`.
    pub time_zone: Arc<str>,
    /// Each start is delayed by a fraction of this, always the same for the same tick.
    #[serde(default)]
    pub jitter: Duration,
    #[serde(default)]
    pub overlap: Overlap,
    #[serde(default)]
    pub catch_up: CatchUp,
    #[serde(default)]
    pub paused: bool,
    /// The labels of the runs that the schedule starts.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

/// The policy for a tick while the run of an earlier tick is still under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The tick is left out.
    #[default]
    Skip,
    /// The run waits until the one before has ended.
    Queue,
    Allow,
}

/// The policy for ticks that passed while no server was running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// They are left out.
    Skip,
    /// The newest of them is started.
    #[default]
    Last,
    /// All of them are started, oldest first.
    All,
}

/// Why a text is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSchedule {
    #[error("`{name}` is not a name: letters, digits, `_`, `-`, `.`, at most 128 of them")]
    Name { name: String },
    #[error("`{cron}` in time zone `{time_zone}` is not a schedule: {reason}")]
    Cron { cron: String, time_zone: String, reason: String },
}

/// The ticks that a pass at one moment has to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// Ticks to start, oldest first.
    pub start: Vec<Timestamp>,
    /// The first tick after those.
    pub next: Option<Timestamp>,
}

impl Schedule {
    /// Checks the schedule, and reads its lines.
    pub fn timetable(&self) -> Result<Timetable, BadSchedule> {
        let known = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if self.name.is_empty() || self.name.len() > 128 || !self.name.chars().all(known) {
            return Err(BadSchedule::Name { name: self.name.to_string() });
        }
        Timetable::parse(&self.cron, &self.time_zone).map_err(|bad| BadSchedule::Cron {
            cron: bad.line,
            time_zone: self.time_zone.to_string(),
            reason: bad.reason,
        })
    }

    /// When the start of a tick is due: the tick, delayed by its share of the jitter.
    pub fn start_at(&self, tick: Timestamp) -> Timestamp {
        let digest = Hash::of(format!("{}/{}", self.name, tick.as_millis()).as_bytes());
        let share = u32::from(u16::from_be_bytes([digest.0[0], digest.0[1]]));
        tick.plus(self.jitter * share / u32::from(u16::MAX))
    }

    /// Names the start of a tick: starting it again gives the same run.
    pub fn key_of(&self, tick: Timestamp) -> String {
        format!("schedule/{}/{tick}", self.name)
    }

    /// Which ticks from `next` on are to be started at `now`.
    pub fn due(&self, timetable: &Timetable, next: Timestamp, now: Timestamp) -> Due {
        let all = self.catch_up == CatchUp::All;
        let mut passed: Vec<Timestamp> = Vec::new();
        let mut upcoming = Some(if all { next } else { self.skip_ahead(timetable, next, now) });
        while let Some(tick) = upcoming.filter(|tick| self.start_at(*tick) <= now)
            && !(all && passed.len() == TICKS_MAX)
        {
            if !all {
                passed.clear();
            }
            passed.push(tick);
            upcoming = timetable.next_after(tick);
        }
        let on_time = |tick: &Timestamp| now.since(self.start_at(*tick)) <= LATE_AFTER;
        if self.catch_up == CatchUp::Skip {
            passed.retain(on_time);
        }
        Due { start: passed, next: upcoming }
    }

    /// Finds a recent tick to search from where only the newest counts, instead of visiting every tick of a long
    /// absence.
    fn skip_ahead(&self, timetable: &Timetable, next: Timestamp, now: Timestamp) -> Timestamp {
        let newest = SKIP_TO.iter().find_map(|back| {
            let recent = timetable.next_after(now.minus(*back + self.jitter));
            recent.filter(|tick| self.start_at(*tick) <= now)
        });
        newest.map_or(next, |tick| tick.max(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    fn schedule(cron: &str, time_zone: &str) -> Schedule {
        Schedule {
            name: "nightly".into(),
            workflow: "report".into(),
            version: None,
            input: Payload::null(),
            cron: cron.into(),
            time_zone: time_zone.into(),
            jitter: Duration::ZERO,
            overlap: Overlap::Skip,
            catch_up: CatchUp::Last,
            paused: false,
            labels: Labels::new(),
        }
    }

    #[test]
    fn ticks_are_those_of_the_time_zone_across_a_change_of_the_clock() {
        let timetable = schedule("30 9 * * *", "Europe/Berlin").timetable().unwrap();
        let ticks = timetable.between(at("2026-03-28T00:00:00Z"), at("2026-03-30T00:00:00Z"));
        assert_eq!(ticks, [at("2026-03-28T08:30:00Z"), at("2026-03-29T07:30:00Z")]);
    }

    #[test]
    fn nonsense_is_refused_with_the_reason() {
        for (cron, zone) in [
            ("* * * *", "UTC"),
            ("* * * * * * *", "UTC"),
            ("61 * * * *", "UTC"),
            ("* * * * *", "Mars/Olympus"),
            ("", "UTC"),
        ] {
            let refused = schedule(cron, zone).timetable();
            assert!(matches!(refused, Err(BadSchedule::Cron { .. })), "{cron} {zone}: {refused:?}");
        }
        let named = Schedule { name: "a b".into(), ..schedule("* * * * *", "UTC") };
        assert!(matches!(named.timetable(), Err(BadSchedule::Name { .. })));
    }

    #[test]
    fn missed_ticks_are_treated_by_the_policy() {
        let base = schedule("0 * * * *", "UTC");
        let timetable = base.timetable().unwrap();
        let (next, now) = (at("2026-01-01T01:00:00Z"), at("2026-01-01T03:30:00Z"));
        let hours = |hours: &[u8]| -> Vec<Timestamp> {
            hours.iter().map(|hour| at(&format!("2026-01-01T{hour:02}:00:00Z"))).collect()
        };
        for (catch_up, expected) in
            [(CatchUp::Skip, hours(&[])), (CatchUp::Last, hours(&[3])), (CatchUp::All, hours(&[1, 2, 3]))]
        {
            let due = Schedule { catch_up, ..base.clone() }.due(&timetable, next, now);
            assert_eq!(due, Due { start: expected, next: Some(at("2026-01-01T04:00:00Z")) }, "{catch_up:?}");
        }
        let on_time = Schedule { catch_up: CatchUp::Skip, ..base.clone() }.due(&timetable, next, next);
        assert_eq!(on_time.start, [next]);
        assert_eq!(base.due(&timetable, next, at("2026-01-01T00:59:59Z")).start, []);
    }

    #[test]
    fn a_long_absence_is_not_walked_minute_by_minute() {
        let base = schedule("* * * * *", "UTC");
        let timetable = base.timetable().unwrap();
        let now = at("2026-01-01T00:00:30Z");
        let due = base.due(&timetable, at("2006-01-01T00:00:00Z"), now);
        assert_eq!(due.start, [at("2026-01-01T00:00:00Z")]);
        assert_eq!(due.next, Some(at("2026-01-01T00:01:00Z")));
        let all =
            Schedule { catch_up: CatchUp::All, ..base }.due(&timetable, at("2006-01-01T00:00:00Z"), now);
        assert_eq!(all.start.len(), TICKS_MAX);
        assert_eq!(all.next, Some(at("2006-01-01T16:40:00Z")), "the rest follows at the next pass");
        let seconds = schedule("@every 1s", "UTC");
        let due = seconds.due(&seconds.timetable().unwrap(), at("2006-01-01T00:00:00Z"), now);
        assert_eq!((due.start, due.next), (vec![now], Some(at("2026-01-01T00:00:31Z"))));
    }

    #[test]
    fn jitter_puts_a_start_off_by_its_own_share() {
        let spread = Schedule { jitter: Duration::from_secs(600), ..schedule("0 * * * *", "UTC") };
        let ticks =
            spread.timetable().unwrap().between(at("2026-01-01T00:00:00Z"), at("2026-01-03T00:00:00Z"));
        let delays: std::collections::BTreeSet<_> =
            ticks.iter().map(|tick| spread.start_at(*tick).since(*tick)).collect();
        assert!(delays.len() > 40 && delays.iter().all(|delay| *delay <= Duration::from_secs(600)));
    }
}
