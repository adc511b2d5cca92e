//! Environment names that are not settings. The program reads no others besides these and those of the table.

/// The variable that names the settings file.
pub const CONFIG_ENV: &str = "SWITCHYARD_CONFIG";

/// The settings file that is read if none is named; it may be missing.
pub const CONFIG_FILE: &str = "switchyard.toml";

/// The prefix of this program's own variables.
pub(crate) const PREFIX: &str = "SWITCHYARD_";

/// Variables that are not settings, with their purpose.
pub(crate) const OTHERS: &[(&str, &str)] = &[
    (CONFIG_ENV, "the settings file (`--config FILE` wins)"),
    ("NO_COLOR", "not empty: no colours on the terminal"),
    ("USER", "who acts, in histories (or `LOGNAME`)"),
    ("SWITCHYARD_SECRET_…", "the secrets of nodes (`secrets.env_prefix`)"),
    ("SWITCHYARD_RUN_ID", "set for the program of a `command` node: its run"),
    ("SWITCHYARD_NODE", "set for the program of a `command` node: its node"),
    ("SWITCHYARD_ATTEMPT", "set for the program of a `command` node: which attempt it is"),
    ("SWITCHYARD_IDEMPOTENCY_KEY", "set for the program of a `command` node: the same for every attempt"),
    (
        "SWITCHYARD_PROCESS_TOKEN",
        "set for the program of a `command` node: marks it and what it starts, so that all of it ends with the attempt",
    ),
    ("AWS_…", "the variables of AWS clients: for payloads in S3 (`cas.url`)"),
    (
        "TRACEPARENT",
        "set for the program of a `command` node, with `TRACESTATE`: the trace that it belongs to",
    ),
    ("KUBECONFIG", "where Kubernetes is, for `kubernetes.pod_selector` outside a pod"),
    ("SWITCHYARD_URL", "read by `examples/worker.py`: the server"),
    ("SWITCHYARD_BENCH_MEMORY_ALONE", "set by `bench memory` for the process that it measures"),
    ("SWITCHYARD_KILL_SEED", "read by a test: repeats its random choices"),
    ("SWITCHYARD_TEST_REDIS", "read by tests: the program that they start instead of `redis-server`"),
    ("SWITCHYARD_UPDATE_OPENAPI", "read by a test: rewrites `docs/reference/openapi.json`"),
    ("SWITCHYARD_UPDATE_DOCS", "read by tests: rewrites the generated pages under `docs`"),
];

/// Variables of similar programs for which there is no setting here, with the reason.
pub(crate) const NO_SETTINGS: &[(&str, &str)] = &[
    ("MESSAGING_PLATFORM", "streams of Redis carry tasks if `redis.url` is set, and nothing else does"),
    (
        "MESSAGING_QUEUE_NAME",
        "there is a stream for each type of task and priority (`docs/reference/keys.md`); `redis.prefix` tells setups apart",
    ),
    (
        "REDIS_STREAM_DELETE_AFTER_ACK",
        "always: an entry is acknowledged and deleted by the script that settles it, so the length of a stream is its \
         backlog",
    ),
];
