//! A fake collector of spans.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// Accepts spans from any number of processes.
pub(crate) fn start() -> (String, mpsc::Receiver<Span>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            std::thread::spawn(move || take(BufReader::new(stream), &sender));
        }
    });
    (address, received)
}

/// Reads the requests of one connection until it is closed.
fn take(mut stream: BufReader<TcpStream>, sender: &mpsc::Sender<Span>) -> Option<()> {
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1)?.split("\r\n").next()?;
        let mut body = vec![0; length.parse().ok()?];
        stream.read_exact(&mut body).ok()?;
        let request = ExportTraceServiceRequest::decode(&body[..]).ok()?;
        let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).for_each(|span| drop(sender.send(span)));
        stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()?;
    }
}
