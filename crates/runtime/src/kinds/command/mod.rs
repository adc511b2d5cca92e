//! `command`: runs a local program, JSON in and out.

#[cfg(target_os = "linux")]
mod cgroup;
mod containment;
mod environment;
#[cfg(target_os = "linux")]
mod processes;

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use serde_json::Value;
use switchyard_core::NodeError;
use switchyard_lang::program::CompiledCommand;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};

use super::Call;
use super::content::{CONTENT_BYTES_MAX, excerpt, harmless, text_or_base64};
use crate::handlers::{ByteLines, LogStream};
use crate::secrets::Revealed;
use containment::Containment;

/// Settings for the programs of `command` nodes.
#[derive(Clone, Debug)]
pub struct Commands {
    /// Names of this process's environment variables that programs get besides the default ones (`PATH`, `HOME`, …).
    /// A `*` at the end matches any rest.
    pub env: Vec<String>,
    /// Makes this process the parent of orphaned processes, so that they are found even if a program has cleared its
    /// environment. Only for a process that starts no programs other than those of nodes.
    pub adopt_orphans: bool,
    /// Gives each attempt its own cgroup where this process may create one.
    pub cgroups: bool,
}

impl Default for Commands {
    fn default() -> Self {
        Self { env: Vec::new(), adopt_orphans: false, cgroups: true }
    }
}

/// How many of the last bytes of stderr an error message contains.
const STDERR_TAIL_BYTES: usize = 2 * 1024;

pub(super) async fn execute(call: &Call<'_>, spec: &CompiledCommand) -> Result<Value, NodeError> {
    if !call.services.allow_commands {
        let message = "this worker runs no commands; start with --allow-commands if it should";
        return Err(NodeError::permanent("commands_not_allowed", message));
    }
    let input = call.input().await?.to_string().into_bytes();
    let mut command = command(call, spec).await?;
    let program = excerpt(command.as_std().get_program().as_encoded_bytes(), 100);
    let (child, containment) = Containment::start(&call.services.commands, &mut command)
        .map_err(|error| not_started(&program, &command, &error))?;
    let log = Log { logs: &call.held.logs, secrets: call.secrets };
    let ended = drive(child, containment, input, log).await.map_err(|error| broken(&program, &error))?;
    if ended.status.success() {
        Ok(output(call.secrets.redact_bytes(ended.stdout)))
    } else {
        Err(failed(&program, ended.status, &call.secrets.redact_tail(ended.stderr_tail)))
    }
}

async fn command(call: &Call<'_>, spec: &CompiledCommand) -> Result<Command, NodeError> {
    let mut texts = Vec::with_capacity(spec.command.len());
    for text in &spec.command {
        texts.push(call.render_text(text).await?);
    }
    let mut texts = texts.into_iter();
    // The compiler guarantees that there is one.
    let mut command = Command::new(texts.next().unwrap_or_default());
    command.env_clear().envs(environment::passed_on(&call.services.commands.env));
    command.args(texts);
    for (name, template) in &spec.env {
        match call.render(template).await? {
            Value::Null => {}
            Value::String(text) => _ = command.env(name, text),
            other => _ = command.env(name, other.to_string()),
        }
    }
    if let Some(cwd) = &spec.cwd {
        command.current_dir(call.render_text(cwd).await?);
    }
    if let Some(trace) = call.services.observe.outgoing(call.task) {
        command.env("TRACEPARENT", trace.traceparent);
        command.envs(trace.tracestate.map(|state| ("TRACESTATE", state)));
    }
    command
        .env("SWITCHYARD_RUN_ID", call.task.run.to_string())
        .env("SWITCHYARD_NODE", &*call.task.node)
        .env("SWITCHYARD_ATTEMPT", call.task.attempt.to_string())
        .env("SWITCHYARD_IDEMPOTENCY_KEY", call.idempotency_key())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    Ok(command)
}

fn not_started(program: &str, command: &Command, error: &io::Error) -> NodeError {
    let cwd = command.as_std().get_current_dir();
    match error.kind() {
        // The system reports "not found" for a missing program and for a missing directory.
        io::ErrorKind::NotFound if cwd.is_some_and(|cwd| !cwd.is_dir()) => {
            let cwd = excerpt(cwd.unwrap_or(Path::new("")).as_os_str().as_encoded_bytes(), 200);
            NodeError::permanent("command_cwd", format!("there is no directory `{cwd}`"))
        }
        io::ErrorKind::NotFound => {
            NodeError::permanent("command_not_found", format!("there is no program `{program}`"))
        }
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::ArgumentListTooLong
        | io::ErrorKind::ExecutableFileBusy
        | io::ErrorKind::NotADirectory => {
            NodeError::permanent("command_start", format!("cannot start `{program}`: {error}"))
        }
        _ => NodeError::retryable("command_start", format!("cannot start `{program}`: {error}")),
    }
}

struct Ended {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr_tail: Vec<u8>,
}

/// The log that receives stderr, and the secrets that are removed from it.
#[derive(Clone, Copy)]
struct Log<'a> {
    logs: &'a LogStream,
    secrets: &'a Revealed,
}

enum Broken {
    TooLarge,
    Io(io::Error),
}

/// Writes the program's input and reads its output until it ends. Dropping this future kills the program with all its
/// descendants.
async fn drive(
    mut child: Child,
    mut containment: Containment,
    input: Vec<u8>,
    log: Log<'_>,
) -> Result<Ended, Broken> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let ended = async {
        let status = child.wait().await.map_err(Broken::Io);
        // Remaining processes would hold the output open.
        let killed = tokio::task::spawn_blocking(move || containment.kill()).await;
        killed.map_err(|error| Broken::Io(error.into()))?;
        status
    };
    let (status, stdout, stderr_tail, ()) =
        tokio::try_join!(ended, whole(stdout), tail(stderr, log), feed(stdin, input))?;
    Ok(Ended { status, stdout, stderr_tail })
}

/// Writes the input. A program may end without having read it.
async fn feed(stdin: Option<ChildStdin>, input: Vec<u8>) -> Result<(), Broken> {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(&input).await;
    }
    Ok(())
}

async fn whole(stdout: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, Broken> {
    let mut bytes = Vec::new();
    let Some(stdout) = stdout else { return Ok(bytes) };
    stdout.take(CONTENT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).await.map_err(Broken::Io)?;
    if bytes.len() > CONTENT_BYTES_MAX { Err(Broken::TooLarge) } else { Ok(bytes) }
}

/// Logs the program's stderr, and returns the end of it.
async fn tail(stderr: Option<impl AsyncRead + Unpin>, log: Log<'_>) -> Result<Vec<u8>, Broken> {
    let (mut tail, mut lines) = (Vec::new(), ByteLines::new(log.secrets));
    let Some(mut stderr) = stderr else { return Ok(tail) };
    loop {
        let before = tail.len();
        if stderr.read_buf(&mut tail).await.map_err(Broken::Io)? == 0 {
            break;
        }
        lines.push(&tail[before..], log.logs);
        let surplus = tail.len().saturating_sub(STDERR_TAIL_BYTES);
        tail.drain(..surplus);
    }
    lines.finish(log.logs);
    Ok(tail)
}

/// The output of a program: JSON if it parses, else text.
fn output(stdout: Vec<u8>) -> Value {
    if stdout.trim_ascii().is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(&stdout).unwrap_or_else(|_| text_or_base64(without_newline(stdout)))
}

fn without_newline(mut text: Vec<u8>) -> Vec<u8> {
    if text.ends_with(b"\n") {
        text.pop();
    }
    if text.ends_with(b"\r") {
        text.pop();
    }
    text
}

fn failed(program: &str, status: ExitStatus, stderr_tail: &[u8]) -> NodeError {
    use std::os::unix::process::ExitStatusExt;
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    };
    let said = harmless(stderr_tail);
    let separator = if said.is_empty() { "" } else { ": " };
    NodeError::retryable("exit_status", format!("`{program}` {how}{separator}{said}"))
}

fn broken(program: &str, error: &Broken) -> NodeError {
    match error {
        Broken::TooLarge => {
            let message = format!("`{program}` wrote more than {CONTENT_BYTES_MAX} bytes");
            NodeError::permanent("output_too_large", message)
        }
        Broken::Io(error) => {
            NodeError::retryable("command_io", format!("lost touch with `{program}`: {error}"))
        }
    }
}
