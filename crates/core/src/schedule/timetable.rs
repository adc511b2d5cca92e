//! The ticks of a schedule: cron lines with or without seconds, `@hourly` and its kin, `@every 10s`.

use std::time::Duration;

use cronexpr::{Crontab, MakeTimestamp};
use switchyard_base::HumanDuration;

use super::TICKS_MAX;
use crate::Timestamp;

/// Lines that one schedule may have.
const LINES_MAX: usize = 20;

/// The shortest interval of `@every`.
const EVERY_MIN: Duration = Duration::from_secs(1);

/// Names that stand for a cron expression.
const NAMED: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The ticks of a schedule: those of all its lines, each moment once.
#[derive(Clone, Debug)]
pub struct Timetable {
    lines: Vec<Line>,
}

/// One line of a schedule.
#[derive(Clone, Debug)]
enum Line {
    /// An interval in milliseconds, counted from the Unix epoch: all servers compute the same ticks.
    Every(i64),
    Minutes(Crontab),
    /// These seconds of every minute that the expression matches, in order.
    Seconds(Vec<i64>, Crontab),
}

/// A line that is not a schedule, and why.
pub(super) struct BadLine {
    pub(super) line: String,
    pub(super) reason: String,
}

impl Timetable {
    pub(super) fn parse(text: &str, time_zone: &str) -> Result<Self, BadLine> {
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if lines.is_empty() || lines.len() > LINES_MAX {
            let reason = format!("expected 1 to {LINES_MAX} lines of 5 fields, found {}", lines.len());
            return Err(BadLine { line: text.trim().chars().take(100).collect(), reason });
        }
        // Checks the time zone, which a schedule of `@every` lines alone would not read.
        crontab("* * * * *", time_zone).map_err(|reason| BadLine { line: lines[0].to_owned(), reason })?;
        let read = |line: &&str| {
            Line::parse(line, time_zone).map_err(|reason| BadLine { line: (*line).to_owned(), reason })
        };
        Ok(Self { lines: lines.iter().map(read).collect::<Result<_, _>>()? })
    }

    /// The first tick after `moment`; none if the expression never comes again.
    pub fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        self.lines.iter().filter_map(|line| line.next_after(moment)).min()
    }

    /// The ticks in `from..=until`, at most [`TICKS_MAX`].
    pub fn between(&self, from: Timestamp, until: Timestamp) -> Vec<Timestamp> {
        let before = Timestamp::from_millis(from.as_millis().saturating_sub(1));
        let ticks = std::iter::successors(self.next_after(before), |tick| self.next_after(*tick));
        ticks.take_while(|tick| *tick <= until).take(TICKS_MAX).collect()
    }
}

impl Line {
    fn parse(line: &str, time_zone: &str) -> Result<Self, String> {
        if let Some(interval) = line.strip_prefix("@every ") {
            return every(interval);
        }
        if line.starts_with('@') {
            let named = NAMED.iter().find(|(name, _)| *name == line);
            let (_, cron) = named.ok_or_else(|| {
                "expected @yearly, @monthly, @weekly, @daily, @hourly or an interval such as `@every 10s`"
                    .to_owned()
            })?;
            return crontab(cron, time_zone).map(Self::Minutes);
        }
        // The library reads the time zone as one more field, so it would take one field too many for a time zone.
        match line.split_whitespace().count() {
            5 => crontab(line, time_zone).map(Self::Minutes),
            6 => {
                let (seconds, minutes) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
                Ok(Self::Seconds(seconds_of(seconds)?, crontab(minutes.trim(), time_zone)?))
            }
            found => Err(format!(
                "expected 5 fields (minute hour day month weekday), or 6 with the second in front, found {found}"
            )),
        }
    }

    fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(millis) => {
                let periods = moment.as_millis().div_euclid(*millis).checked_add(1)?;
                periods.checked_mul(*millis).map(Timestamp::from_millis)
            }
            Self::Minutes(crontab) => next_match(crontab, moment),
            Self::Seconds(seconds, crontab) => {
                let minute = Timestamp::from_millis(moment.as_millis().div_euclid(60_000) * 60_000);
                let in_minute =
                    |minute: Timestamp, second: &i64| minute.plus(Duration::from_secs(second.unsigned_abs()));
                let left = seconds.iter().map(|second| in_minute(minute, second)).find(|tick| *tick > moment);
                if left.is_some() && matches(crontab, minute) {
                    return left;
                }
                next_match(crontab, minute).map(|minute| in_minute(minute, &seconds[0]))
            }
        }
    }
}

fn every(interval: &str) -> Result<Line, String> {
    let HumanDuration(interval) = interval
        .trim()
        .parse()
        .map_err(|bad: switchyard_base::BadDuration| format!("{bad}: {}", bad.hint))?;
    if interval < EVERY_MIN {
        return Err("the shortest interval is `@every 1s`".to_owned());
    }
    Ok(Line::Every(i64::try_from(interval.as_millis()).unwrap_or(i64::MAX)))
}

fn crontab(minutes: &str, time_zone: &str) -> Result<Crontab, String> {
    let parsed = cronexpr::parse_crontab(&format!("{minutes} {time_zone}"));
    parsed.map_err(|error| error.to_string().replace('\n', " "))
}

fn next_match(crontab: &Crontab, moment: Timestamp) -> Option<Timestamp> {
    let from = MakeTimestamp::from_millisecond(moment.as_millis()).ok()?;
    let next = crontab.find_next(from).ok()?;
    Some(Timestamp::from_millis(next.timestamp().as_millisecond()))
}

fn matches(crontab: &Crontab, minute: Timestamp) -> bool {
    let minute = MakeTimestamp::from_millisecond(minute.as_millis());
    minute.is_ok_and(|minute| crontab.matches(minute).unwrap_or(false))
}

/// The field of seconds: `*`, `*/15`, `0,30`, `10-20`, `10-50/20`. In order, each once, at least one.
fn seconds_of(field: &str) -> Result<Vec<i64>, String> {
    let bad = || format!("`{field}` is not a field of seconds such as `0`, `*/15`, `0,30` or `10-20`");
    let mut seconds = Vec::new();
    for part in field.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let step: usize = step.parse().ok().filter(|step| (1..60).contains(step)).ok_or_else(bad)?;
        let (first, last) = match (range, range.split_once('-')) {
            ("*", _) => (0, 59),
            (_, Some((first, last))) => (second(first).ok_or_else(bad)?, second(last).ok_or_else(bad)?),
            (_, None) => {
                let only = second(range).ok_or_else(bad)?;
                (only, if part.contains('/') { 59 } else { only })
            }
        };
        if first > last {
            return Err(bad());
        }
        seconds.extend((first..=last).step_by(step));
    }
    seconds.sort_unstable();
    seconds.dedup();
    Ok(seconds)
}

fn second(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|second| digits && *second < 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn ticks(lines: &str, zone: &str, from: &str, until: &str) -> Vec<String> {
        let Ok(timetable) = Timetable::parse(lines, zone) else { panic!("{lines}") };
        timetable
            .between(at(from), at(until))
            .iter()
            .map(|tick| tick.to_string().replace(".000Z", ""))
            .collect()
    }

    #[test]
    fn seconds_stand_in_front() {
        let found = ticks("*/20 30 9 * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", "2026-01-02T08:30:00Z");
        let expected =
            ["2026-01-01T08:30:00", "2026-01-01T08:30:20", "2026-01-01T08:30:40", "2026-01-02T08:30:00"];
        assert_eq!(found, expected);
        let found = ticks("5,50-55/5,58 * * * * *", "UTC", "2026-01-01T00:00:06Z", "2026-01-01T00:01:05Z");
        let expected =
            ["2026-01-01T00:00:50", "2026-01-01T00:00:55", "2026-01-01T00:00:58", "2026-01-01T00:01:05"];
        assert_eq!(found, expected);
    }

    #[test]
    fn names_stand_for_expressions_and_every_for_an_interval() {
        let (from, until) = ("2025-12-31T23:30:00Z", "2026-01-01T01:00:00Z");
        assert_eq!(ticks("@hourly", "UTC", from, until), ["2026-01-01T00:00:00", "2026-01-01T01:00:00"]);
        for name in ["@yearly", "@annually", "@monthly", "@daily", "@midnight"] {
            assert_eq!(ticks(name, "UTC", from, until), ["2026-01-01T00:00:00"], "{name}");
        }
        assert_eq!(ticks("@weekly", "UTC", from, "2026-01-05T00:00:00Z"), ["2026-01-04T00:00:00"]);
        let found = ticks("@every 40m", "UTC", from, until);
        assert_eq!(found, ["2026-01-01T00:00:00", "2026-01-01T00:40:00"]);
        assert_eq!(ticks("@every 10s", "UTC", "2026-01-01T00:00:01Z", "2026-01-01T00:00:20Z").len(), 2);
    }

    #[test]
    fn several_lines_give_each_moment_once() {
        let found = ticks(
            "0 9 * * *\n\n @daily \n0 9,10 * * *",
            "UTC",
            "2026-01-01T00:00:00Z",
            "2026-01-01T23:00:00Z",
        );
        assert_eq!(found, ["2026-01-01T00:00:00", "2026-01-01T09:00:00", "2026-01-01T10:00:00"]);
    }

    #[test]
    fn the_line_that_is_wrong_is_named() {
        for (lines, line, reason) in [
            ("0 9 * * *\n@fortnightly", "@fortnightly", "expected @yearly"),
            ("@every 10", "@every 10", "add a unit"),
            ("@every 500ms", "@every 500ms", "@every 1s"),
            ("60 * * * * *", "60 * * * * *", "seconds"),
            ("20-10 * * * * *", "20-10 * * * * *", "seconds"),
            ("*/0 * * * * *", "*/0 * * * * *", "seconds"),
            ("+5 * * * * *", "+5 * * * * *", "seconds"),
            ("* * * *", "* * * *", "5 fields"),
            ("* * * * * * *", "* * * * * * *", "found 7"),
        ] {
            let Err(bad) = Timetable::parse(lines, "UTC") else { panic!("{lines}") };
            assert!(bad.line == line && bad.reason.contains(reason), "{lines}: {}: {}", bad.line, bad.reason);
        }
        assert!(Timetable::parse("@every 10s", "Mars/Olympus").is_err());
        assert!(Timetable::parse(&"@daily\n".repeat(21), "UTC").is_err());
    }
}
