//! The servers start on demand, and end with their process.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use switchyard_test_servers::postgres::{Postgres, Sync};

fn answers(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

#[test]
fn a_server_can_be_stopped_and_started_again() {
    let mut server = Postgres::start(Sync::Off);
    let port = server.port();
    assert!(answers(port));
    server.stop();
    assert!(!answers(port));
    server.start_again();
    assert!(answers(server.port()));
    server.crash();
    assert!(!answers(port));
}

#[test]
fn a_killed_test_process_leaves_nothing_behind() {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "starts_a_server_and_waits", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let port = lines.find_map(|line| line.strip_prefix("port ")?.parse().ok()).expect("the server's port");
    assert!(answers(port));
    process.kill().unwrap();
    process.wait().unwrap();
    // The server holds no pipe of this process, so the test polls until it has ended.
    while answers(port) {
        std::thread::yield_now();
    }
}

#[test]
#[ignore = "not a test: the process that the test above starts and kills"]
#[expect(clippy::print_stdout, reason = "the test above reads it")]
fn starts_a_server_and_waits() {
    let server = Postgres::start(Sync::Off);
    println!("\nport {}", server.port());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}
