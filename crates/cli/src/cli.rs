//! The command line: commands and global flags.

use clap::{Parser, Subcommand};

use crate::commands::{
    api, approvals, bench, bulk, checkpoints, completions, config, consumers, dev, doctor, init, inspect,
    keys, migrate, patch, queues, redis, run, runs, schedules, schema, up, validate, worker, workers,
    workflows,
};
use crate::flags::GlobalArgs;

const EXIT_CODES: &str = "\
Exit codes:
  0    it worked; a run that was followed succeeded
  1    the run failed or was cancelled, or the state of a run does not allow what was asked; `doctor` found
       something that does not work
  2    bad usage: an unknown command or id, an invalid workflow, input or patch
  3    the data folder could not be opened or written, or Redis could not be reached
  130  interrupted by Ctrl-C (143 by SIGTERM); the run can be resumed

Example:
  switchyard run examples/hello.yaml --input '{\"name\": \"Ada\"}'";

/// Durable workflows for AI agents, from one command
#[derive(Debug, Parser)]
#[command(name = "switchyard", version, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::Args),
    Dev(dev::Args),
    Up(up::Args),
    Api(api::Args),
    Worker(worker::Args),
    Run(run::Args),
    Validate(validate::Args),
    Schema(schema::Args),
    #[command(subcommand)]
    Runs(runs::Command),
    #[command(subcommand)]
    Bulk(bulk::Command),
    #[command(subcommand)]
    Approvals(approvals::Command),
    #[command(subcommand)]
    Patch(patch::Command),
    #[command(subcommand)]
    Workflows(workflows::Command),
    #[command(subcommand)]
    Schedules(schedules::Command),
    Queues(queues::Args),
    Workers(workers::Args),
    Migrate(migrate::Args),
    #[command(subcommand)]
    Redis(redis::Command),
    #[command(subcommand)]
    Checkpoints(checkpoints::Command),
    Consumers(consumers::Args),
    Inspect(inspect::Args),
    Doctor(doctor::Args),
    Config(config::Args),
    #[command(subcommand)]
    Keys(keys::Command),
    Bench(bench::Args),
    Completions(completions::Args),
}
