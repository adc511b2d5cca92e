//! How results get into an event loop.
//!
//! The loop watches one end of a socket pair. Whoever has a result puts it into the queue and, if nobody did so before,
//! writes a byte. The loop then resolves all futures that have a result. So no other thread ever waits for the
//! interpreter, and results that arrive together are handed over together.
//!
//! The other way is the same: what the loop begins in one turn is handed to the runtime together, at the end of the turn,
//! because waking the runtime's thread for each cost a quarter of the time of a graph on 10 threads, on a busy machine.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::intern;
use pyo3::prelude::*;
use switchyard_checkpoints::Error;

use crate::errors::to_python;
use crate::live::{Live, runtime};
use crate::op::{Outcome, Task};

type Answer = Result<Outcome, Error>;

/// The way into one event loop.
#[pyclass(frozen, module = "switchyard._core")]
pub(crate) struct Bridge {
    reader: UnixStream,
    queue: Arc<Queue>,
    /// Futures by ticket. Only used by the loop's thread.
    futures: Mutex<(u64, HashMap<u64, Py<PyAny>>)>,
    /// Begun in this turn of the loop.
    begun: Mutex<Vec<Begun>>,
}

struct Begun {
    task: Task,
    live: Arc<Live>,
    ticket: Ticket,
}

impl Begun {
    async fn run(self) {
        let outcome = self.task.run(&self.live.store).await;
        self.ticket.resolve(outcome);
    }
}

struct Queue {
    writer: UnixStream,
    answers: Mutex<Vec<(u64, Answer)>>,
}

/// A result that is owed to a future.
struct Ticket {
    number: u64,
    queue: Arc<Queue>,
    is_resolved: bool,
}

impl Ticket {
    fn resolve(mut self, answer: Answer) {
        self.is_resolved = true;
        self.queue.push(self.number, answer);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_resolved {
            let lost = Error::Invalid("the call was given up; this is a bug in switchyard".to_owned());
            self.queue.push(self.number, Err(lost));
        }
    }
}

impl Queue {
    fn push(&self, number: u64, answer: Answer) {
        let mut answers = self.answers.lock();
        answers.push((number, answer));
        // One byte wakes the loop for all that wait. If the loop is gone, nobody is waiting.
        if answers.len() == 1 {
            let _ = (&self.writer).write(&[0]);
        }
    }
}

impl Bridge {
    /// Whether it is the first of this turn: then `flush` has to be called at its end.
    pub(crate) fn begin(&self, task: Task, live: Arc<Live>, future: Py<PyAny>) -> bool {
        let ticket = self.expect(future);
        let mut begun = self.begun.lock();
        begun.push(Begun { task, live, ticket });
        begun.len() == 1
    }

    fn expect(&self, future: Py<PyAny>) -> Ticket {
        let mut futures = self.futures.lock();
        futures.0 += 1;
        let number = futures.0;
        futures.1.insert(number, future);
        Ticket { number, queue: self.queue.clone(), is_resolved: false }
    }
}

#[pymethods]
impl Bridge {
    #[new]
    fn new() -> PyResult<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        let queue = Arc::new(Queue { writer, answers: Mutex::default() });
        Ok(Self { reader, queue, futures: Mutex::default(), begun: Mutex::default() })
    }

    /// What the loop has to watch.
    fn fileno(&self) -> i32 {
        self.reader.as_raw_fd()
    }

    /// Hands what was begun in this turn to the runtime.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let begun = std::mem::take(&mut *self.begun.lock());
        let handle = runtime().map_err(|error| to_python(py, error))?;
        handle.spawn(async move {
            for each in begun {
                tokio::spawn(each.run());
            }
        });
        Ok(())
    }

    /// Resolves the futures whose results have come.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        let mut bytes = [0; 64];
        while (&self.reader).read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
        let answers = std::mem::take(&mut *self.queue.answers.lock());
        for (number, answer) in answers {
            let future = self.futures.lock().1.remove(&number);
            let Some(future) = future else { continue };
            let future = future.into_bound(py);
            // Cancelled meanwhile: nobody wants to know.
            if future.call_method0(intern!(py, "done"))?.is_truthy()? {
                continue;
            }
            let outcome = answer.map_err(|error| to_python(py, error)).and_then(|done| done.into_python(py));
            match outcome {
                Ok(value) => future.call_method1(intern!(py, "set_result"), (value,))?,
                Err(error) => future.call_method1(intern!(py, "set_exception"), (error,))?,
            };
        }
        Ok(())
    }
}
