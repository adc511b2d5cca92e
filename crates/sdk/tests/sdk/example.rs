//! Runs the examples.

#[path = "../../examples/greet.rs"]
#[expect(dead_code, reason = "its `main` is for `cargo run`")]
mod greet;

#[path = "../../examples/worker.rs"]
#[expect(dead_code, reason = "its `main` is for `cargo run`")]
mod worker;

#[tokio::test]
async fn worker_counts_at_a_server() {
    let server = crate::server::TestServer::start().await;
    let (seen, counted) = worker::count_at(&server.url(), 5, 0).await.unwrap();
    assert_eq!((seen.join(" ").as_str(), counted), ("1 2 3 4 5", 5));
}

#[tokio::test]
async fn greet_greets() {
    let folder = tempfile::tempdir().unwrap();
    let greeting = greet::greet_in(folder.path(), "Ada".into()).await.unwrap();
    assert_eq!(greeting, "Hello, Countess Ada!");
    // The folder was closed properly: the next process can open it.
    let refused = greet::greet_in(folder.path(), String::new()).await.unwrap_err().to_string();
    assert!(refused.contains("whom shall I greet? (no_name)"), "{refused}");
}

#[test]
fn the_guide_shows_lines_of_the_example() {
    let guide = include_str!("../../../../docs/guide/rust.md");
    let shown = guide.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let example: Vec<&str> = include_str!("../../examples/greet.rs").lines().map(str::trim).collect();
    for line in shown.lines().map(str::trim) {
        assert!(example.contains(&line), "{line}");
    }
}
