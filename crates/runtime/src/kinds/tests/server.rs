//! A server that sends scripted responses, byte for byte.

use std::collections::VecDeque;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

pub(super) struct Server {
    pub(super) port: u16,
    requests: mpsc::UnboundedReceiver<String>,
}

impl Server {
    pub(super) async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        Self::answering_in_turn([answer.into()]).await
    }

    /// The first request gets the first answer, and so on; the last answer is repeated.
    pub(super) async fn answering_in_turn(answers: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut answers: VecDeque<Vec<u8>> = answers.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = sender.send(request(&mut stream).await);
                let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
                let answer = answer.unwrap_or_default();
                // The client may have closed the connection before the end.
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
            }
        });
        Self { port, requests }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The next request, as it was received.
    pub(super) async fn request(&mut self) -> String {
        self.requests.recv().await.unwrap()
    }
}

/// A response with a `content-length`.
pub(super) fn answer(status: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// Reads the head and body of a request, its head in lowercase.
pub(super) async fn request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return format!("{head}\r\n\r\n{body}");
            }
        }
        if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
            return String::from_utf8_lossy(&bytes).into_owned();
        }
    }
}
