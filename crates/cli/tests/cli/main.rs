//! Transcripts of the real binary: exit code, stdout and stderr, with ids and times filtered out.

mod approvals;
mod both_ways;
mod checkpoints;
mod config;
mod consumers;
mod damage;
mod definitions;
mod doctor;
mod file_size;
mod first_day;
mod harness;
mod help;
mod hostile_text;
mod interrupted;
mod keys;
mod observed;
mod patch;
mod queues;
mod run;
mod runs;
mod schedules;
mod store;
mod through_server;
mod up;
mod waiting;
mod walk;
