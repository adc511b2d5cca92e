//! What is typed into a question.

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

/// On a thread of its own: a read from a terminal cannot be called off, and must not keep the process.
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
