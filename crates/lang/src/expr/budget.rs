//! The budget of one evaluation: steps, bytes made, and time.
//!
//! The evaluator charges before it works: an operation whose result would not fit is not begun. A budget that was
//! exceeded stays exceeded, so an operator that swallows errors (`||`, `all`, `.?`) cannot hide it.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use switchyard_base::HumanDuration;

use crate::limits;

/// Bytes that are made, copied or scanned in the time of one step.
const BYTES_PER_STEP: u64 = 256;

/// Steps between two checks of the time.
const STEPS_PER_LOOK: u64 = 1024;

/// The limit that an evaluation exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    Steps { max: u64 },
    Bytes { max: u64 },
    Time { max: Duration },
}

impl Exceeded {
    /// Whether another try may succeed. Counts are the same every time; time depends on how busy the machine is.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Time { .. })
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps { max } => write!(f, "it takes more than {max} steps, the limit of an evaluation"),
            Self::Bytes { max } => write!(f, "it makes more than {max} bytes, the limit of an evaluation"),
            Self::Time { max } => {
                write!(f, "it takes longer than {}, the limit of an evaluation", HumanDuration(*max))
            }
        }
    }
}

/// A stopwatch of the caller: this crate reads no clock.
struct TimeLimit<'a> {
    max: Duration,
    is_over: &'a dyn Fn() -> bool,
}

/// The budget of one evaluation, with the steps and bytes left.
pub struct Budget<'a> {
    steps_max: u64,
    bytes_max: u64,
    steps_left: Cell<u64>,
    bytes_left: Cell<u64>,
    time: Option<TimeLimit<'a>>,
    exceeded: Cell<Option<Exceeded>>,
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("steps_left", &self.steps_left.get())
            .field("bytes_left", &self.bytes_left.get())
            .field("exceeded", &self.exceeded.get())
            .finish_non_exhaustive()
    }
}

impl Default for Budget<'_> {
    /// The largest budget of an evaluation: [`limits::EVALUATION_STEPS_MAX`], [`limits::EVALUATION_BYTES_MAX`].
    fn default() -> Self {
        Self::new(limits::EVALUATION_STEPS_MAX, limits::EVALUATION_BYTES_MAX)
    }
}

impl<'a> Budget<'a> {
    pub fn new(steps_max: u64, bytes_max: u64) -> Self {
        Self {
            steps_max,
            bytes_max,
            steps_left: Cell::new(steps_max),
            bytes_left: Cell::new(bytes_max),
            time: None,
            exceeded: Cell::new(None),
        }
    }

    /// Ends the evaluation once `is_over` returns true; the budget calls it about every thousand steps.
    pub fn with_time_limit(mut self, max: Duration, is_over: &'a dyn Fn() -> bool) -> Self {
        self.time = Some(TimeLimit { max, is_over });
        self
    }

    /// The limit that was exceeded first, even if the evaluation continued.
    pub fn exceeded(&self) -> Option<Exceeded> {
        self.exceeded.get()
    }

    pub fn steps_used(&self) -> u64 {
        self.steps_max - self.steps_left.get()
    }

    pub fn bytes_used(&self) -> u64 {
        self.bytes_max - self.bytes_left.get()
    }

    pub(crate) fn bytes_left(&self) -> u64 {
        self.bytes_left.get()
    }

    /// Charges for work about to be done.
    #[inline]
    pub(crate) fn step(&self, count: u64) -> Result<(), Exceeded> {
        let before = self.steps_left.get();
        let Some(left) = before.checked_sub(count) else {
            return Err(self.exceed(Exceeded::Steps { max: self.steps_max }));
        };
        self.steps_left.set(left);
        if before / STEPS_PER_LOOK != left / STEPS_PER_LOOK {
            self.look_at_time()?;
        }
        Ok(())
    }

    /// Charges for bytes about to be allocated, and for the time that it takes to fill them.
    #[inline]
    pub(crate) fn make(&self, bytes: u64) -> Result<(), Exceeded> {
        let Some(left) = self.bytes_left.get().checked_sub(bytes) else {
            return Err(self.exceed(Exceeded::Bytes { max: self.bytes_max }));
        };
        self.bytes_left.set(left);
        self.scan(bytes)
    }

    /// Charges for bytes about to be read.
    #[inline]
    pub(crate) fn scan(&self, bytes: u64) -> Result<(), Exceeded> {
        match bytes / BYTES_PER_STEP {
            0 => Ok(()),
            steps => self.step(steps),
        }
    }

    #[cold]
    fn exceed(&self, limit: Exceeded) -> Exceeded {
        let first = self.exceeded.get().unwrap_or(limit);
        self.exceeded.set(Some(first));
        self.steps_left.set(0);
        self.bytes_left.set(0);
        first
    }

    fn look_at_time(&self) -> Result<(), Exceeded> {
        match &self.time {
            Some(time) if (time.is_over)() => Err(self.exceed(Exceeded::Time { max: time.max })),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exceeded_budget_stays_exceeded_and_says_what_was_first() {
        let budget = Budget::new(10, 1000);
        assert_eq!(budget.make(1001), Err(Exceeded::Bytes { max: 1000 }));
        assert_eq!(budget.step(1), Err(Exceeded::Bytes { max: 1000 }));
        assert_eq!(budget.make(1), Err(Exceeded::Bytes { max: 1000 }));
        assert_eq!(budget.exceeded(), Some(Exceeded::Bytes { max: 1000 }));
    }

    #[test]
    fn time_is_looked_at_between_steps() {
        let over = Cell::new(false);
        let is_over = || over.get();
        let budget = Budget::default().with_time_limit(Duration::from_secs(5), &is_over);
        assert_eq!(budget.step(10_000), Ok(()));
        over.set(true);
        let time = Exceeded::Time { max: Duration::from_secs(5) };
        assert_eq!(budget.step(10_000), Err(time));
        assert!(time.is_retryable());
        assert_eq!(time.to_string(), "it takes longer than 5s, the limit of an evaluation");
    }
}
