//! Every setting. An entry here is all there is to adding one: the file, the environment, the flag, the command
//! `config` and `docs/reference/settings.md` follow from it.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use crate::lists::{EnvNames, Networks, Origins};
use crate::setting::{Flag, Kind, Scope, Setting};
use crate::value::{ByteSize, Factor, HeaderList, LogFormat, Minutes, Ratio, Seconds, Secret, ServerUrl};

macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = { $($about:tt)+ };)+) => {
        /// Everything that can be set.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[doc = $doc])+ pub $name: $type,)+
        }

        /// The same as data, in the order of the reference.
        pub const SETTINGS: &[Setting] = &[
            $(Setting { doc: &[$($doc),+], kind: Kind::of::<$type>(), $($about)+, ..Setting::BLANK },)+
        ];

        impl Settings {
            /// From texts that were checked, in the order of [`SETTINGS`].
            pub(crate) fn from_texts<'a>(texts: impl IntoIterator<Item = Option<&'a str>>) -> Self {
                let mut rest = SETTINGS.iter().zip(texts);
                // Fields are evaluated in the order in which they are written.
                Self { $($name: {
                    let (setting, text) = rest.next().expect("a text for every setting");
                    setting.settle(text)
                },)+ }
            }
        }
    };
}

const fn flag(long: &'static str, value: &'static str, on: Scope) -> Option<Flag> {
    Some(Flag { long, value: Some(value), on })
}

const fn switch(long: &'static str, on: Scope) -> Option<Flag> {
    Some(Flag { long, value: None, on })
}

settings! {
    /// The folder with runs, their history and their payloads.
    data: PathBuf = {
        key: "data",
        env: "SWITCHYARD_DATA",
        flag: flag("data", "DIR", Scope::Everywhere),
        default: Some("./switchyard-data")
    };

    /// The Redis that holds runs in flight, instead of the memory of this process: `redis://`, `rediss://` (TLS),
    /// `redis+unix://` or `redis+sentinel://`, with user and password if Redis asks for them.
    ///
    /// Redis 7 or newer or Valkey, with `noeviction` and an append-only file. `docs/operating/redis.md` describes it.
    redis: Option<Secret> = {
        key: "redis.url",
        env: "REDIS_URL",
        flag: flag("redis", "URL", Scope::Stores),
        secret: true
    };

    /// The beginning of every key in Redis, so that several installations can share a Redis.
    redis_prefix: Option<String> = {
        key: "redis.prefix",
        env: "SWITCHYARD_REDIS_PREFIX"
    };

    /// The namespace that `switchyard checkpoints` reads: that of the LangGraph savers.
    checkpoints_namespace: String = {
        key: "checkpoints.namespace",
        env: "CHECKPOINTER_NAMESPACE",
        default: Some("default")
    };

    /// The Postgres that stores history, instead of the data folder: `postgres://user:password@host/database`.
    ///
    /// The URL takes `schema` (`switchyard` if not given), and as every client of Postgres `sslmode` (`disable`, `prefer`,
    /// `require`, `verify-ca` or `verify-full`; `prefer` if not given), `sslrootcert`, `sslcert` and `sslkey`.
    postgres: Option<Secret> = {
        key: "postgres.url",
        env: "SWITCHYARD_POSTGRES",
        flag: flag("postgres", "URL", Scope::Stores),
        secret: true
    };

    /// How long `up`, `api` and `worker` wait at their start for a Redis and a Postgres that they cannot reach, before they
    /// end with an error; `0s`: they do not wait. They do not wait for a store that refuses them, such as for a wrong
    /// password. A process that has started waits for a lost store without a limit.
    stores_wait: Duration = {
        key: "stores.wait",
        env: "SWITCHYARD_STORES_WAIT",
        default: Some("30s"),
        max: Some("1h")
    };

    /// How long a change may wait in Redis for the archive until the outbox counts as stuck: `/readyz` then answers 503,
    /// `switchyard_archive_stuck` is 1, and `switchyard doctor` says why.
    stores_stuck_after: Duration = {
        key: "stores.stuck_after",
        env: "SWITCHYARD_STORES_STUCK_AFTER",
        default: Some("30s"),
        min: Some("1s"),
        max: Some("1h")
    };

    /// Where large payloads are kept, if Redis is used: `postgres` (with the history), `s3://bucket/prefix`, or
    /// `file:///folder` on a disk that every process sees. If not given, with the history.
    ///
    /// For S3 and compatible stores, the variables of AWS clients hold the rest:
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`, and those of
    /// roles (`AWS_ROLE_ARN`, `AWS_WEB_IDENTITY_TOKEN_FILE`). All processes have to be told the same place. Anything but
    /// `postgres` needs a program that was built with `--features object-stores`.
    cas: Option<String> = {
        key: "cas.url",
        env: "SWITCHYARD_CAS"
    };

    /// How long runs are kept after they have ended; for ever, if not given. A pass that removes runs is made every 10
    /// minutes.
    retention_keep_for: Option<Duration> = {
        key: "retention.keep_for",
        env: "SWITCHYARD_RETENTION_KEEP_FOR",
        min: Some("1m")
    };

    /// How many runs that have ended are kept, those that ended last; all, if not given. Runs that other runs started
    /// are not counted: they go with them.
    retention_keep_runs: Option<NonZeroUsize> = {
        key: "retention.keep_runs",
        env: "SWITCHYARD_RETENTION_KEEP_RUNS"
    };

    /// How long a large payload is kept that no run mentions any more, or not yet. Counts if one of the two above is
    /// set.
    retention_payload_grace: Duration = {
        key: "retention.payload_grace",
        env: "SWITCHYARD_RETENTION_PAYLOAD_GRACE",
        default: Some("1d"),
        min: Some("10m")
    };

    /// The address to serve on; port 0 is any that is free.
    listen: SocketAddr = {
        key: "listen",
        env: "SWITCHYARD_LISTEN",
        flag: flag("listen", "ADDRESS", Scope::Serving),
        default: Some("127.0.0.1:7070")
    };

    /// The server that commands talk to, if one answers there; `none` for the data folder in any case.
    ///
    /// If both a server and a data folder are named, a flag beats the environment, and the environment beats this file.
    /// A server that loses against the folder is used only if it works on that folder; a server that wins has to answer.
    server: ServerUrl = {
        key: "server",
        env: "SWITCHYARD_SERVER",
        flag: flag("server", "URL", Scope::Everywhere),
        default: Some("http://127.0.0.1:7070")
    };

    /// The API key that commands send to the server.
    api_key: Option<Secret> = {
        key: "api_key",
        env: "SWITCHYARD_API_KEY",
        secret: true
    };

    /// What to log, as tracing filter directives such as `switchyard_runtime=debug`.
    ///
    /// `-v` stands for `info`, `-vv` for `info` and the debug lines of Switchyard's own crates. By default only
    /// errors are logged, and not those that end the command with the same sentence.
    log_filter: String = {
        key: "log.filter",
        env: "SWITCHYARD_LOG",
        flag: flag("log", "FILTER", Scope::Everywhere),
        default: Some("error,switchyard_runtime::worker::slot=off,switchyard_archive_sqlite::sqlite::writer=off")
    };

    /// How log lines look: `pretty` for people, `json` for programs, one object a line.
    log_format: LogFormat = {
        key: "log.format",
        env: "SWITCHYARD_LOG_FORMAT",
        flag: flag("log-format", "FORMAT", Scope::Everywhere),
        default: Some("pretty")
    };

    /// Tasks executed at once in this process.
    slots: NonZeroUsize = {
        key: "worker.slots",
        env: "SWITCHYARD_SLOTS",
        env_also: Some("WORKER_POD_MESSAGES_BATCH_SIZE"),
        flag: flag("slots", "N", Scope::Working),
        default: Some("64"),
        min: Some("1"),
        max: Some("10000")
    };

    /// The types of task that a worker takes, such as `http,function`; all of them, if not given.
    worker_types: Option<String> = {
        key: "worker.types",
        env: "SWITCHYARD_WORKER_TYPES",
        flag: flag("types", "LIST", Scope::Worker)
    };

    /// What a worker is called in histories; made up, if not given.
    worker_name: Option<String> = {
        key: "worker.name",
        env: "WORKER_POD_NAME"
    };

    /// How long what a worker holds is its own without a heartbeat. Then another takes it.
    worker_lease: Duration = {
        key: "worker.lease",
        env: "SWITCHYARD_WORKER_LEASE",
        default: Some("30s"),
        min: Some("1s"),
        max: Some("1h")
    };

    /// How many workers a task may take down with it before it is given up, as a dead letter.
    worker_deliveries: NonZeroUsize = {
        key: "worker.deliveries",
        env: "SWITCHYARD_WORKER_DELIVERIES",
        default: Some("10"),
        min: Some("1"),
        max: Some("1000")
    };

    /// The functions that plain Redis workers serve, such as `greet,mail.*`, or `*` for all: their tasks lie in the stream
    /// `wf.tasks.function`. Every other function has a stream of its own, for workers that name it. The same for every
    /// process that shares a Redis.
    plain_functions: Option<String> = {
        key: "plain.functions",
        env: "SWITCHYARD_PLAIN_FUNCTIONS"
    };

    /// How long a task that a plain Redis worker has read is its own without a sign of life. Then it is queued again.
    plain_lease: Duration = {
        key: "plain.lease",
        env: "SWITCHYARD_PLAIN_LEASE",
        default: Some("1m"),
        min: Some("1s"),
        max: Some("1d")
    };

    /// How long workers have to stop what they hold of a run that is cancelled or past its deadline. What has not stopped by
    /// then is ended, and what its worker says later does not count; `0s`: at once.
    runs_stop_grace: Duration = {
        key: "runs.stop_grace",
        env: "SWITCHYARD_RUNS_STOP_GRACE",
        default: Some("30s"),
        max: Some("1d")
    };

    /// Let `command` nodes run programs on this machine.
    allow_commands: bool = {
        key: "worker.allow_commands",
        env: "SWITCHYARD_ALLOW_COMMANDS",
        flag: switch("allow-commands", Scope::Working),
        default: Some("false")
    };

    /// Environment variables of this process that the programs of `command` nodes are given, besides `PATH`, `HOME`, `USER`,
    /// `LOGNAME`, `SHELL`, `LANG`, `LANGUAGE`, `LC_*`, `TZ` and `TMPDIR`. Names with commas between; a `*` at the end stands for
    /// any rest, as in `AWS_*`.
    ///
    /// Programs do not see the rest of the environment, where credentials of this process are. What a single node
    /// needs is better named in its `env`.
    command_env: Option<EnvNames> = {
        key: "command.env",
        env: "SWITCHYARD_COMMAND_ENV"
    };

    /// Addresses that `http` nodes may call although they are refused otherwise: link-local addresses (`169.254.0.0/16`,
    /// `fe80::/10`) and those of metadata services, which give credentials to every process that asks. Addresses or
    /// networks, with commas between, such as `169.254.170.2, fe80::/10`.
    ///
    /// An address counts, not the name that led to it. Where calls go through a proxy (`HTTP_PROXY`), the proxy resolves
    /// names and has to refuse.
    egress_allow: Option<Networks> = {
        key: "egress.allow",
        env: "SWITCHYARD_EGRESS_ALLOW"
    };

    /// How long tasks that are running may go on once `up` stops; then they are handed back.
    worker_grace: Duration = {
        key: "worker.grace",
        env: "SWITCHYARD_WORKER_GRACE",
        default: Some("5s"),
        max: Some("1h")
    };

    /// Where the Envoy beside this process is told to quit when it has stopped, such as
    /// `http://127.0.0.1:15000/quitquitquit`. Without that a pod with a sidecar never ends.
    ///
    /// It is a POST, and the last thing that the process does. That it fails is a warning.
    envoy_quit_url: Option<ServerUrl> = {
        key: "worker.envoy_quit_url",
        env: "SWITCHYARD_ENVOY_QUIT_URL"
    };

    /// The folder with the secrets of nodes: a file for each, named like the secret, with its value as text. Files are read
    /// at every call, so a secret can be rotated without a restart. A file comes before a variable with
    /// [`secrets.env_prefix`](#secretsenv_prefix).
    secrets_dir: Option<PathBuf> = {
        key: "secrets.dir",
        env: "SWITCHYARD_SECRETS_DIR"
    };

    /// Variables of this process's environment that are secrets of nodes: what follows the prefix is the name, so
    /// `secrets.CRM_TOKEN` in a workflow is `SWITCHYARD_SECRET_CRM_TOKEN`. They are read when the process starts.
    secrets_env_prefix: String = {
        key: "secrets.env_prefix",
        env: "SWITCHYARD_SECRETS_ENV_PREFIX",
        default: Some("SWITCHYARD_SECRET_")
    };

    /// How long an attempt of a `function` node may take that has no `timeout` of its own. Beyond that it has failed with
    /// code `timeout`, whichever worker holds it; heartbeats do not extend it.
    ///
    /// An entry of a stream that is pending for longer is reported. `api`, `worker` and `up` processes that share a Redis
    /// should be told the same.
    message_lock: Seconds = {
        key: "consumers.message_lock",
        env: "MESSAGE_LOCK_DURATION",
        default: Some("1800"),
        min: Some("1")
    };

    /// How often members of the group that reads tasks are compared with the workers that are alive, by one process
    /// at a time. Ghosts leave the group, after what they had pending was moved.
    consumer_cleanup_every: Seconds = {
        key: "consumers.cleanup_every",
        env: "CONSUMER_CLEANUP_INTERVAL_SECONDS",
        default: Some("3600"),
        min: Some("1")
    };

    /// How long a member of the group must not have read anything until it can be a ghost; `consumers.message_lock` and
    /// five minutes, if not given.
    consumer_idle_min: Option<Seconds> = {
        key: "consumers.idle_min",
        env: "IDLE_THRESHOLD_SECONDS"
    };

    /// Only say which ghosts there are, and leave them where they are.
    consumer_dry_run: bool = {
        key: "consumers.dry_run",
        env: "DRY_RUN",
        default: Some("false")
    };

    /// How long the lock of a process lasts that looks after the streams and says nothing any more.
    stream_lock: Seconds = {
        key: "streams.lock",
        env: "STREAM_CLEANUP_LOCK_TTL_SECONDS",
        default: Some("300"),
        min: Some("1")
    };

    /// Look for entries that are pending for longer than `consumers.message_lock`, and report them; remove those that
    /// mean nothing any more.
    stream_watch: bool = {
        key: "streams.watch",
        env: "REDIS_STREAM_CLEANUP_ENABLED",
        default: Some("true")
    };

    /// How often to look for entries that are pending for long, by one process at a time.
    stream_watch_every: Minutes = {
        key: "streams.watch_every",
        env: "STREAM_CLEANUP_INTERVAL_MINUTES",
        default: Some("60"),
        min: Some("0.1")
    };

    /// How often a submission is tried again when Redis does not answer. Then it is refused with 503.
    submit_retries: u32 = {
        key: "submit.retries",
        env: "REDIS_SEND_MESSAGE_MAX_RETRIES",
        default: Some("3"),
        max: Some("100")
    };

    /// How long to wait before the first of these.
    submit_retry_delay: Seconds = {
        key: "submit.retry_delay",
        env: "REDIS_SEND_MESSAGE_RETRY_DELAY",
        default: Some("0.5"),
        max: Some("60")
    };

    /// How many times as long each wait is as the one before.
    submit_retry_backoff: Factor = {
        key: "submit.retry_backoff",
        env: "REDIS_SEND_MESSAGE_RETRY_BACKOFF",
        default: Some("2"),
        max: Some("10")
    };

    /// The labels of the pods that workers run in, such as `app=switchyard-worker`. A worker whose pod is there is no
    /// ghost, in any case; if Kubernetes does not answer, no consumer is.
    ///
    /// The name of a worker must be that of its pod (`WORKER_POD_NAME`). Kubernetes is found as programs in pods find it,
    /// or by `KUBECONFIG`; the account needs to `list` `pods`. The program has to be built with `--features kubernetes`.
    pod_selector: Option<String> = {
        key: "kubernetes.pod_selector",
        env: "SWITCHYARD_POD_SELECTOR"
    };

    /// The namespace of those pods; that of this process, if not given.
    pod_namespace: Option<String> = {
        key: "kubernetes.namespace",
        env: "POD_NAMESPACE"
    };

    /// The largest body of a request.
    http_body_max: ByteSize = {
        key: "http.body_max",
        env: "SWITCHYARD_HTTP_BODY_MAX",
        default: Some("16MiB"),
        min: Some("1KiB"),
        max: Some("1GiB")
    };

    /// Origins of web pages that may use the API from a browser, besides pages that the server itself serves. Each is a
    /// scheme, a host and a port if it is not the usual one, with commas between, such as
    /// `https://app.example.com, http://localhost:3000`.
    ///
    /// A server that wants no keys refuses every other page, also one of another port of the same machine. One that wants
    /// keys lets a page in that has one, but only answers pages of these origins in a way that a browser shows to them.
    http_cors_origins: Option<Origins> = {
        key: "http.cors_origins",
        env: "SWITCHYARD_HTTP_CORS_ORIGINS"
    };

    /// How long a request may take; one that waits for work, that much longer than its wait.
    http_timeout: Duration = {
        key: "http.timeout",
        env: "SWITCHYARD_HTTP_TIMEOUT",
        default: Some("1m"),
        min: Some("1s"),
        max: Some("1h")
    };

    /// How often a stream of events says that there is nothing new, so that proxies keep the connection.
    http_heartbeat: Duration = {
        key: "http.heartbeat",
        env: "SWITCHYARD_HTTP_HEARTBEAT",
        default: Some("15s"),
        min: Some("100ms"),
        max: Some("1h")
    };

    /// How long requests under way may take to end once `up` stops.
    http_grace: Duration = {
        key: "http.grace",
        env: "SWITCHYARD_HTTP_GRACE",
        default: Some("10s"),
        max: Some("1h")
    };

    /// The address on which a worker answers `/healthz`, `/readyz` and `/metrics`; on none, if not given. It tells nothing
    /// about runs and wants no key.
    metrics_listen: Option<SocketAddr> = {
        key: "metrics.listen",
        env: "SWITCHYARD_METRICS_LISTEN"
    };

    /// The collector that spans of runs and steps are exported to; without one, none are.
    ///
    /// OTLP over HTTP with protobuf: spans are sent to `/v1/traces` below it. Runs never wait for the collector: what
    /// it does not take is given up, counted (`switchyard_spans_dropped_total`), and told at most once a minute. Of
    /// processes that share a Redis the one that ships to the archive exports: set it for all of them.
    otlp_endpoint: Option<ServerUrl> = {
        key: "otlp.endpoint",
        env: "OTEL_EXPORTER_OTLP_ENDPOINT"
    };

    /// Headers that are sent to the collector, such as a token.
    otlp_headers: Option<HeaderList> = {
        key: "otlp.headers",
        env: "OTEL_EXPORTER_OTLP_HEADERS",
        secret: true
    };

    /// What this process is called in traces.
    otlp_service: String = {
        key: "otlp.service",
        env: "OTEL_SERVICE_NAME",
        default: Some("switchyard")
    };

    /// Which part of the runs is traced. Runs that were asked for as part of a trace follow it instead.
    otlp_sample: Ratio = {
        key: "otlp.sample",
        env: "OTEL_TRACES_SAMPLER_ARG",
        default: Some("1")
    };
}
