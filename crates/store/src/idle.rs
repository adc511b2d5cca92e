//! Workers that wait for something to do.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use switchyard_core::in_flight::takes;
use tokio::sync::oneshot;

/// Who waits, for which queues. First come, first woken.
#[derive(Debug, Default)]
pub struct IdleWorkers {
    waiting: Mutex<VecDeque<Waiter>>,
}

#[derive(Debug)]
struct Waiter {
    queues: Arc<[Arc<str>]>,
    wake: oneshot::Sender<()>,
}

impl IdleWorkers {
    /// Lines up. The caller must look for work once more afterwards, and then await the receiver.
    pub fn line_up(&self, queues: Arc<[Arc<str>]>) -> oneshot::Receiver<()> {
        let (wake, woken) = oneshot::channel();
        self.waiting.lock().push_back(Waiter { queues, wake });
        woken
    }

    /// Wakes everybody: something may have been missed.
    pub fn wake_all(&self) {
        self.waiting.lock().clear();
    }

    /// Wakes one worker for each token that was queued.
    pub fn wake(&self, queues: &[Arc<str>]) {
        if queues.is_empty() {
            return;
        }
        let mut waiting = self.waiting.lock();
        for queue in queues {
            while let Some(location) = waiting.iter().position(|waiter| takes(&waiter.queues, queue)) {
                let woken = waiting.remove(location).is_some_and(|waiter| waiter.wake.send(()).is_ok());
                // Who has stopped waiting in the meantime leaves the wake-up to the next.
                if woken {
                    break;
                }
            }
            if waiting.is_empty() {
                return;
            }
        }
    }
}
