//! Reads the answers to questions on the terminal.

use std::io::BufRead;

use switchyard_core::run::Decision;
use tokio::sync::mpsc;

pub(super) fn decision(line: &str) -> Option<Decision> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" | "a" | "approve" => Some(Decision::Approved),
        "n" | "no" | "r" | "reject" => Some(Decision::Rejected),
        _ => None,
    }
}

/// Reads lines from stdin on its own thread: a read from a terminal cannot be cancelled, and must not delay the exit.
pub(super) fn read_lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
