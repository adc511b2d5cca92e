//! Idle workers that wait for tasks.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use switchyard_core::in_flight::takes;
use tokio::sync::oneshot;

/// Idle workers with the queues they wait for, woken first come, first served.
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
    /// Queues the caller behind the other idle workers. The caller must look for work once more, then await the
    /// receiver.
    pub fn line_up(&self, queues: Arc<[Arc<str>]>) -> oneshot::Receiver<()> {
        let (wake, woken) = oneshot::channel();
        self.waiting.lock().push_back(Waiter { queues, wake });
        woken
    }

    /// Wakes every idle worker, because a wake-up may have been missed.
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
                // If this worker has stopped waiting, the next one is woken.
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
