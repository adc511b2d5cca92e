//! The random operations on the stores.

use proptest::prelude::*;

use crate::outcomes::{How, how};

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Accept {
        graph: u8,
        key: Option<u8>,
        once: Option<u8>,
        deadline: bool,
        /// The delay in seconds.
        delay: Option<u8>,
        priority: Option<u8>,
    },
    Claim {
        max: u8,
        which: u8,
    },
    Settle {
        which: Vec<(u8, How)>,
        claim: u8,
    },
    SettleAgain {
        which: u8,
        how: How,
    },
    Heartbeat {
        which: u8,
    },
    Say {
        which: u8,
        chunks: u8,
    },
    Pass {
        seconds: u16,
    },
    Cancel {
        run: u8,
        compensate: bool,
        now: bool,
    },
    Pause {
        run: u8,
    },
    Resume {
        run: u8,
    },
    Signal {
        run: u8,
    },
    Decide {
        approve: bool,
    },
    Patch {
        run: u8,
        what: u8,
    },
    Retry {
        run: u8,
    },
    /// A command that took effect is sent again.
    Repeat {
        which: u8,
        changed: bool,
    },
    Restart,
    /// A plain worker reads a task.
    Read {
        stream: u8,
        said: Said,
    },
}

/// The signal of a plain worker about a task that it has read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said {
    Started,
    /// Plain workers succeed or fail: the other outcomes need access to a store.
    Ended(How),
    /// No signal: the task is taken back.
    Nothing,
}

/// Operations on a store that has streams to read.
pub(crate) fn op_with_readers() -> impl Strategy<Value = Op> {
    let said = prop_oneof![
        2 => Just(Said::Started),
        2 => any::<u8>().prop_map(|n| Said::Ended(How::Succeed(n))),
        1 => Just(Said::Ended(How::Fail)),
        1 => Just(Said::Ended(How::FailForGood)),
        1 => Just(Said::Nothing),
    ];
    prop_oneof![
        4 => op(),
        1 => (any::<u8>(), said).prop_map(|(stream, said)| Op::Read { stream, said }),
    ]
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let accept = (any::<u8>(), prop::option::of(0u8..3), prop::option::weighted(0.2, 0u8..4), any::<u8>());
    let settle = (prop::collection::vec((any::<u8>(), how()), 1..4), 0u8..3);
    prop_oneof![
        3 => accept.prop_map(|(graph, key, once, deadline)| {
            let delay = (deadline % 4 == 1).then_some(deadline / 8);
            let priority = (deadline % 3 == 1).then_some(1 + deadline / 26);
            Op::Accept { graph, key, once, deadline: deadline % 8 == 0, delay, priority }
        }),
        6 => (1u8..4, any::<u8>()).prop_map(|(max, which)| Op::Claim { max, which }),
        12 => settle.prop_map(|(which, claim)| Op::Settle { which, claim }),
        2 => (any::<u8>(), how()).prop_map(|(which, how)| Op::SettleAgain { which, how }),
        1 => any::<u8>().prop_map(|which| Op::Heartbeat { which }),
        1 => (any::<u8>(), 0u8..3).prop_map(|(which, chunks)| Op::Say { which, chunks }),
        3 => (0u16..40).prop_map(|seconds| Op::Pass { seconds }),
        1 => any::<(u8, bool, bool)>()
            .prop_map(|(run, compensate, now)| Op::Cancel { run, compensate, now }),
        1 => any::<u8>().prop_map(|run| Op::Pause { run }),
        1 => any::<u8>().prop_map(|run| Op::Resume { run }),
        1 => any::<u8>().prop_map(|run| Op::Signal { run }),
        1 => any::<bool>().prop_map(|approve| Op::Decide { approve }),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(run, what)| Op::Patch { run, what }),
        1 => any::<u8>().prop_map(|run| Op::Retry { run }),
        2 => any::<(u8, bool)>().prop_map(|(which, changed)| Op::Repeat { which, changed }),
        1 => Just(Op::Restart),
    ]
}
