//! Moves calls out of an event loop, and results back into it.
//!
//! A call uses a [`LoopConnection`]: a connection that the loop watches itself. If there is none, or not yet, the
//! runtime makes the call on its thread. The loop then watches one end of a socket pair: a thread with a result puts
//! it into the queue and, if the queue was empty, writes a byte. The loop resolves all futures that have a result. So
//! no other thread ever waits for the interpreter, and results that arrive together are resolved together. In the
//! other direction, all calls that the loop begins in one turn are handed to the runtime together, at the end of the
//! turn.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::intern;
use pyo3::prelude::*;
use switchyard_checkpoints::Error;
use switchyard_checkpoints::raw_connection::{Failure, RawConnection};

use crate::errors::to_python;
use crate::live::{Live, runtime};
use crate::loop_connection::{Arrivals, Call, LoopConnection, Wants};
use crate::op::{Outcome, Task};

/// The way out of one event loop and into it. All but the queue is only used by the loop's thread.
#[pyclass(frozen, module = "switchyard._core")]
pub(crate) struct Bridge {
    reader: UnixStream,
    queue: Arc<Queue>,
    /// The last ticket number, and the futures by ticket.
    futures: Mutex<(u64, HashMap<u64, Py<PyAny>>)>,
    /// Calls that began in this turn of the loop, for the runtime.
    begun: Mutex<Vec<Begun>>,
    /// The connections, by the id of their [`Live`].
    connections: Mutex<HashMap<u64, Track>>,
}

enum Track {
    Coming,
    Here(LoopConnection),
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
    news: Mutex<Vec<News>>,
}

enum News {
    Answer(u64, Result<Outcome, Error>),
    LoopConnection(Arc<Live>, Result<RawConnection, Failure>),
}

/// The obligation to resolve a future.
struct Ticket {
    number: u64,
    queue: Arc<Queue>,
    is_resolved: bool,
}

impl Ticket {
    fn resolve(mut self, answer: Result<Outcome, Error>) {
        self.is_resolved = true;
        self.queue.push(News::Answer(self.number, answer));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_resolved {
            let lost = Error::Invalid("the call was given up; this is a bug in switchyard".to_owned());
            self.queue.push(News::Answer(self.number, Err(lost)));
        }
    }
}

impl Queue {
    fn push(&self, each: News) {
        let mut news = self.news.lock();
        news.push(each);
        // One byte wakes the loop for all waiting calls. If the loop is gone, no call waits.
        if news.len() == 1 {
            let _ = (&self.writer).write(&[0]);
        }
    }
}

#[pymethods]
impl Bridge {
    #[new]
    fn new() -> PyResult<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        let queue = Arc::new(Queue { writer, news: Mutex::default() });
        let (futures, begun, connections) = (Mutex::default(), Mutex::default(), Mutex::default());
        Ok(Self { reader, queue, futures, begun, connections })
    }

    /// The file descriptor that the loop has to watch.
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

    /// Takes what the runtime has got: resolves futures, and adds rails.
    fn drain(slf: &Bound<'_, Self>, event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
        let this = slf.get();
        let mut bytes = [0; 64];
        while (&this.reader).read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
        let news = std::mem::take(&mut *this.queue.news.lock());
        for each in news {
            match each {
                News::Answer(number, answer) => {
                    let future = this.futures.lock().1.remove(&number);
                    if let Some(future) = future {
                        resolve(slf.py(), future, answer)?;
                    }
                }
                News::LoopConnection(live, connected) => add_rail(slf, event_loop, &live, connected)?,
            }
        }
        Ok(())
    }

    /// There is something to be read from a connection.
    fn arrive(slf: &Bound<'_, Self>, id: u64, event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
        let arrivals = slf.get().on_connection(id, LoopConnection::arrive).unwrap_or_default();
        settle(slf, id, event_loop, arrivals)
    }

    /// There is room on a connection, or something to be sent at the end of the turn.
    fn depart(slf: &Bound<'_, Self>, id: u64, event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let Some((fd, departed)) =
            slf.get().on_connection(id, |connection| (connection.fd(), connection.depart()))
        else {
            return Ok(());
        };
        let Ok(departed) = departed else { return give_up(slf, id, event_loop) };
        if departed.awake {
            soon(slf, intern!(py, "stay_awake"), id, event_loop)?;
        }
        match departed.is_full {
            Some(true) => {
                let depart = slf.getattr(intern!(py, "depart"))?;
                event_loop.call_method1(intern!(py, "add_writer"), (fd, depart, id, event_loop))?;
            }
            Some(false) => {
                event_loop.call_method1(intern!(py, "remove_writer"), (fd,))?;
            }
            None => {}
        }
        Ok(())
    }

    /// Keeps the loop turning while an answer is expected any moment: others get their turns, but it does not go to sleep.
    fn stay_awake(slf: &Bound<'_, Self>, id: u64, event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
        if slf.get().on_connection(id, LoopConnection::stays_awake) == Some(true) {
            soon(slf, intern!(slf.py(), "stay_awake"), id, event_loop)?;
        }
        Ok(())
    }

    /// Looks after calls that are not answered in time.
    fn watch(slf: &Bound<'_, Self>, id: u64, event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
        let timeout = slf.get().on_connection(id, |connection| {
            let timeout = connection.timeout();
            connection.is_watched = timeout.is_some();
            timeout
        });
        match timeout.flatten() {
            None => Ok(()),
            Some(left) if left.is_zero() => give_up(slf, id, event_loop),
            Some(left) => later(slf, left.as_secs_f64(), id, event_loop),
        }
    }
}

impl Bridge {
    /// Begins a task, and resolves the future when it is done.
    pub(crate) fn begin(
        slf: &Bound<'_, Self>,
        event_loop: &Bound<'_, PyAny>,
        task: Task,
        live: Arc<Live>,
        future: Py<PyAny>,
    ) -> PyResult<()> {
        let this = slf.get();
        let id = live.id;
        if !live.is_for_wire(&task) {
            return by_runtime(slf, event_loop, task, live, future);
        }
        let mut connections = this.connections.lock();
        let wants = match connections.get_mut(&id) {
            Some(Track::Here(connection)) => connection.begin(Call::new(task, live, future)),
            Some(Track::Coming) => {
                drop(connections);
                return by_runtime(slf, event_loop, task, live, future);
            }
            None => {
                connections.insert(id, Track::Coming);
                drop(connections);
                this.connect(slf.py(), live.clone())?;
                return by_runtime(slf, event_loop, task, live, future);
            }
        };
        drop(connections);
        serve(slf, id, event_loop, &wants)
    }

    fn connect(&self, py: Python<'_>, live: Arc<Live>) -> PyResult<()> {
        let queue = self.queue.clone();
        runtime().map_err(|error| to_python(py, error))?.spawn(async move {
            let connected = RawConnection::connect(&live.address).await;
            queue.push(News::LoopConnection(live, connected));
        });
        Ok(())
    }

    fn on_connection<T>(&self, id: u64, act: impl FnOnce(&mut LoopConnection) -> T) -> Option<T> {
        match self.connections.lock().get_mut(&id) {
            Some(Track::Here(connection)) => Some(act(connection)),
            _ => None,
        }
    }

    fn remove_connection(&self, id: u64) -> Option<LoopConnection> {
        match self.connections.lock().remove(&id) {
            Some(Track::Here(connection)) => Some(connection),
            _ => None,
        }
    }

    fn expect(&self, future: Py<PyAny>) -> Ticket {
        let mut futures = self.futures.lock();
        futures.0 += 1;
        let number = futures.0;
        futures.1.insert(number, future);
        Ticket { number, queue: self.queue.clone(), is_resolved: false }
    }
}

fn by_runtime(
    slf: &Bound<'_, Bridge>,
    event_loop: &Bound<'_, PyAny>,
    task: Task,
    live: Arc<Live>,
    future: Py<PyAny>,
) -> PyResult<()> {
    let this = slf.get();
    let ticket = this.expect(future);
    let is_first = {
        let mut begun = this.begun.lock();
        begun.push(Begun { task, live, ticket });
        begun.len() == 1
    };
    if is_first {
        let flush = slf.getattr(intern!(slf.py(), "flush"))?;
        event_loop.call_method1(intern!(slf.py(), "call_soon"), (flush,))?;
    }
    Ok(())
}

fn add_rail(
    slf: &Bound<'_, Bridge>,
    event_loop: &Bound<'_, PyAny>,
    live: &Live,
    connected: Result<RawConnection, Failure>,
) -> PyResult<()> {
    match connected {
        Ok(wire) => {
            live.keep(wire.closer());
            let fd = wire.fd();
            slf.get().connections.lock().insert(live.id, Track::Here(LoopConnection::new(wire)));
            let arrive = slf.getattr(intern!(slf.py(), "arrive"))?;
            event_loop.call_method1(intern!(slf.py(), "add_reader"), (fd, arrive, live.id, event_loop))?;
        }
        // The next call tries to connect again, unless that cannot work.
        Err(failure) => {
            live.note(failure);
            slf.get().connections.lock().remove(&live.id);
        }
    }
    Ok(())
}

fn serve(slf: &Bound<'_, Bridge>, id: u64, event_loop: &Bound<'_, PyAny>, wants: &Wants) -> PyResult<()> {
    if wants.depart {
        soon(slf, intern!(slf.py(), "depart"), id, event_loop)?;
    }
    if wants.watch {
        let timeout = slf.get().on_connection(id, |connection| connection.timeout()).flatten();
        later(slf, timeout.unwrap_or_default().as_secs_f64(), id, event_loop)?;
    }
    Ok(())
}

/// Resolves the calls that are done, and hands the others to the runtime.
fn settle(
    slf: &Bound<'_, Bridge>,
    id: u64,
    event_loop: &Bound<'_, PyAny>,
    arrivals: Arrivals,
) -> PyResult<()> {
    if arrivals.is_lost {
        let connection = slf.get().remove_connection(id);
        leave(event_loop, connection)?;
    }
    for call in arrivals.elsewhere {
        by_runtime(slf, event_loop, call.task, call.live, call.future)?;
    }
    for (future, answer) in arrivals.done {
        resolve(slf.py(), future, answer)?;
    }
    Ok(())
}

fn give_up(slf: &Bound<'_, Bridge>, id: u64, event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
    let Some(connection) = slf.get().remove_connection(id) else { return Ok(()) };
    let fd = connection.fd();
    unwatch(event_loop, fd)?;
    settle(slf, id, event_loop, connection.give_up())
}

/// Removes the socket from the loop before it is closed.
fn leave(event_loop: &Bound<'_, PyAny>, connection: Option<LoopConnection>) -> PyResult<()> {
    connection.map_or(Ok(()), |connection| unwatch(event_loop, connection.fd()))
}

fn unwatch(event_loop: &Bound<'_, PyAny>, fd: i32) -> PyResult<()> {
    event_loop.call_method1(intern!(event_loop.py(), "remove_reader"), (fd,))?;
    event_loop.call_method1(intern!(event_loop.py(), "remove_writer"), (fd,))?;
    Ok(())
}

fn soon(
    slf: &Bound<'_, Bridge>,
    method: &Bound<'_, pyo3::types::PyString>,
    id: u64,
    event_loop: &Bound<'_, PyAny>,
) -> PyResult<()> {
    event_loop.call_method1(intern!(slf.py(), "call_soon"), (slf.getattr(method)?, id, event_loop))?;
    Ok(())
}

fn later(slf: &Bound<'_, Bridge>, seconds: f64, id: u64, event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
    let watch = slf.getattr(intern!(slf.py(), "watch"))?;
    event_loop.call_method1(intern!(slf.py(), "call_later"), (seconds, watch, id, event_loop))?;
    Ok(())
}

fn resolve(py: Python<'_>, future: Py<PyAny>, answer: Result<Outcome, Error>) -> PyResult<()> {
    let future = future.into_bound(py);
    // The future was cancelled meanwhile: the result is dropped.
    if future.call_method0(intern!(py, "done"))?.is_truthy()? {
        return Ok(());
    }
    let outcome = answer.map_err(|error| to_python(py, error)).and_then(|done| done.into_python(py));
    match outcome {
        Ok(value) => future.call_method1(intern!(py, "set_result"), (value,))?,
        Err(error) => future.call_method1(intern!(py, "set_exception"), (error,))?,
    };
    Ok(())
}
