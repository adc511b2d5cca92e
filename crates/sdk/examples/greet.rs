//! Two typed handlers and a workflow, in one process: `cargo run -p switchyard-sdk --example greet -- Ada`.
//!
//! State is in `./switchyard-data`. Kill the program at any time and run it again: accepted runs continue.

use std::path::Path;

use serde::{Deserialize, Serialize};
use switchyard_sdk::{Context, HandlerError, Switchyard};

const WORKFLOW: &str = r#"
name: greet
input: { type: object, required: [name] }
nodes:
  look_up:
    type: function
    function: look_up
    input: { name: "${{ input.name }}" }
    retry: { max_attempts: 3, initial: 100ms }
  greet:
    type: function
    function: greet
    needs: [look_up]
    input: "${{ nodes.look_up.output }}"
"#;

#[derive(Serialize, Deserialize)]
struct Greet {
    name: String,
}

#[derive(Serialize, Deserialize)]
struct Person {
    name: String,
    title: Option<String>,
}

async fn look_up(input: Greet, cx: Context) -> Result<Person, HandlerError> {
    if input.name.is_empty() {
        // Another attempt would fail as well.
        return Err(HandlerError::permanent("no_name", "whom shall I greet?"));
    }
    if cx.attempt() == 1 {
        // The node's `retry` makes another attempt.
        return Err(HandlerError::retryable("busy", "the register is busy"));
    }
    let title = (input.name == "Ada").then(|| "Countess".to_owned());
    Ok(Person { name: input.name, title })
}

async fn greet(person: Person, _: Context) -> Result<String, HandlerError> {
    let title = person.title.map(|title| title + " ").unwrap_or_default();
    Ok(format!("Hello, {title}{}!", person.name))
}

pub(crate) async fn greet_in(data: &Path, name: String) -> anyhow::Result<String> {
    let switchyard =
        Switchyard::builder(data).handler("look_up", look_up).handler("greet", greet).open().await?;
    let outcome = switchyard.run::<String>(WORKFLOW, Greet { name }).await;
    switchyard.shut_down().await;
    Ok(outcome?.output()?)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this is what it is an example of")]
async fn main() -> anyhow::Result<()> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "world".to_owned());
    println!("{}", greet_in(Path::new("./switchyard-data"), name).await?);
    Ok(())
}
