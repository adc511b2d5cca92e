//! A TCP proxy in front of a server, which can lose answers.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Forwards connections until an answer is to be lost. The proxy ends with the process.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The answer to lose, if any.
    lost: Option<Lost>,
    /// Number of connections still to be refused.
    refusals: u32,
    /// Both ends of every connection.
    open: Vec<TcpStream>,
}

#[derive(Clone, Copy, Debug)]
struct Lost {
    request: &'static [u8],
    answer: &'static [u8],
    refusals: u32,
}

impl Proxy {
    pub fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let own = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let accepting = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                accept(client, port, &accepting);
            }
        });
        Self { port: own, shared }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits until a client has sent `request`, forwards it, and when the server has sent `answer` cuts every
    /// connection instead of forwarding it. Then it refuses `refusals` connections; if that is `u32::MAX`, all of
    /// them until [`Proxy::reopen`].
    pub fn lose_answer(&self, request: &'static [u8], answer: &'static [u8], refusals: u32) {
        lock(&self.shared).lost = Some(Lost { request, answer, refusals });
    }

    /// Whether the answer was lost.
    pub fn has_lost_it(&self) -> bool {
        lock(&self.shared).lost.is_none()
    }

    pub fn reopen(&self) {
        lock(&self.shared).refusals = 0;
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(client: TcpStream, port: u16, shared: &Arc<Mutex<Shared>>) {
    {
        let mut shared = lock(shared);
        if shared.refusals > 0 {
            shared.refusals = if shared.refusals == u32::MAX { u32::MAX } else { shared.refusals - 1 };
            return;
        }
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (Ok(from_client), Ok(from_server)) = (client.try_clone(), server.try_clone()) else { return };
    if let (Ok(one), Ok(other)) = (client.try_clone(), server.try_clone()) {
        lock(shared).open.extend([one, other]);
    }
    let asked = Arc::new(AtomicBool::new(false));
    let (up, down) = (shared.clone(), shared.clone());
    let answered = asked.clone();
    std::thread::spawn(move || pass_requests(from_client, server, &up, &asked));
    std::thread::spawn(move || pass_answers(from_server, client, &down, &answered));
}

fn pass_requests(mut client: TcpStream, mut server: TcpStream, shared: &Mutex<Shared>, asked: &AtomicBool) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read @ 1..) = client.read(&mut buffer) {
        let bytes = &buffer[..read];
        if lock(shared).lost.is_some_and(|lost| contains(bytes, lost.request)) {
            asked.store(true, Ordering::SeqCst);
        }
        if server.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

fn pass_answers(mut server: TcpStream, mut client: TcpStream, shared: &Mutex<Shared>, asked: &AtomicBool) {
    let mut buffer = [0; 16 * 1024];
    let mut withheld = Vec::new();
    while let Ok(read @ 1..) = server.read(&mut buffer) {
        let bytes = &buffer[..read];
        if !asked.load(Ordering::SeqCst) {
            if client.write_all(bytes).is_err() {
                break;
            }
            continue;
        }
        withheld.extend_from_slice(bytes);
        let mut shared = lock(shared);
        if shared.lost.is_none_or(|lost| contains(&withheld, lost.answer)) {
            shared.refusals = shared.lost.take().map_or(shared.refusals, |lost| lost.refusals);
            for stream in shared.open.drain(..) {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
