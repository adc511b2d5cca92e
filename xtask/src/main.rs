//! Tasks of this repository: `cargo xtask test` does everything that CI does.

mod licences;
mod python;
mod schemathesis;
mod steps;
mod tools;

use clap::{Parser, Subcommand};

/// Tasks of this repository
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Xtask {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check formatting, lints and licences, and run every test
    Test,
    /// Run the tests of the Python package alone
    Python,
    /// Check the licences of everything that is linked in
    Licences,
}

fn main() -> anyhow::Result<()> {
    match Xtask::parse().task {
        Task::Test => steps::test(),
        Task::Python => python::test(),
        Task::Licences => licences::check(),
    }
}
