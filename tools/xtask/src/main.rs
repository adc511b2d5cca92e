//! Tasks of this repository: `cargo xtask test` does everything that CI does.

mod chaos;
mod from_pypi;
mod licences;
mod python;
mod steps;
mod tidy;
mod tools;
mod valkey;

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
    /// Run the tests that need a Redis on Valkey, alone
    Valkey,
    /// Make trouble for processes that share a Redis and a Postgres, for as long as you like
    Chaos(chaos::ChaosArgs),
    /// Check the licences of everything that is linked in
    Licences,
    /// Check documents and sources for what the compiler does not see: links, names, line lengths, unused files
    Tidy,
}

fn main() -> anyhow::Result<()> {
    match Xtask::parse().task {
        Task::Test => steps::test(),
        Task::Python => python::test(),
        Task::Valkey => valkey::test(),
        Task::Chaos(args) => chaos::run(&args),
        Task::Licences => licences::check(),
        Task::Tidy => tidy::check(),
    }
}
