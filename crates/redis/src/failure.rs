//! Errors of Redis, classified by what a caller or an operator can do about them.

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// The reason why a call was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedisFailure {
    /// The server cannot be reached, or does not answer in time.
    Unreachable,
    /// The server has just started and still loads its data.
    Loading,
    /// The server has become a replica: another server is the master now.
    ReadOnly,
    /// Another node of the cluster has the keys, or none has them at the moment.
    Moved,
    /// The server has reached `maxmemory` and evicts nothing.
    Full,
    /// The server refuses writes, because it cannot save its data or has too few replicas.
    Unsafe,
    /// A wrong or missing password.
    Login,
    /// The user lacks a right.
    Forbidden,
    /// A script or function of another client runs for too long.
    Busy,
    Other,
}

impl RedisFailure {
    pub fn of(error: &RedisError) -> Self {
        let is_absent = matches!(
            error.kind(),
            ErrorKind::ClusterConnectionNotFound | ErrorKind::MasterNameNotFoundBySentinel
        );
        if is_absent || error.is_io_error() || error.is_timeout() || error.is_connection_dropped() {
            return Self::Unreachable;
        }
        // For a login that fails while connecting, the crate puts its own words first and the server's into the detail.
        let code = match error.code() {
            Some(code) => code.to_owned(),
            None => detail(error).split([' ', ':']).next().unwrap_or_default().to_owned(),
        };
        match &*code {
            "LOADING" => Self::Loading,
            "READONLY" | "MASTERDOWN" => Self::ReadOnly,
            "MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" => Self::Moved,
            "OOM" => Self::Full,
            "MISCONF" | "NOREPLICAS" => Self::Unsafe,
            "NOAUTH" | "WRONGPASS" => Self::Login,
            "NOPERM" => Self::Forbidden,
            "BUSY" => Self::Busy,
            _ if error.kind() == ErrorKind::AuthenticationFailed => Self::Login,
            _ => Self::Other,
        }
    }

    /// Whether the caller should drop the connection: a new one may lead to another server, or logs in again.
    pub fn ends_the_connection(self) -> bool {
        matches!(self, Self::Unreachable | Self::ReadOnly | Self::Moved | Self::Login)
    }

    /// The label of the failure in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Loading => "loading",
            Self::ReadOnly => "read_only",
            Self::Moved => "moved",
            Self::Full => "full",
            Self::Unsafe => "unsafe",
            Self::Login => "login",
            Self::Forbidden => "forbidden",
            Self::Busy => "busy",
            Self::Other => "other",
        }
    }

    /// The failure as the end of a sentence about a server.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Unreachable => "does not answer",
            Self::Loading => "was started and still reads its data",
            Self::ReadOnly => "is a replica and takes no writes",
            Self::Moved => "is a node of a cluster that does not have these keys",
            Self::Full => "has no memory left (`maxmemory`)",
            Self::Unsafe => "takes no writes until it can keep them safely",
            Self::Login => "does not accept the user or password",
            Self::Forbidden => "does not let its user do that (docs/operating/redis.md lists the rights)",
            Self::Busy => "is busy with another client's script",
            Self::Other => "refused",
        }
    }

    /// Whether a call that was sent, and got this answer or none, can have changed something. Redis refuses a call
    /// before it executes it, except for an error inside a script, which may follow other commands of the same script.
    /// If Redis takes no writes (or is out of memory), it refuses the first write of a script, not a later one.
    pub fn may_have_changed_something(self, error: &RedisError) -> bool {
        match self {
            Self::Unreachable => true,
            Self::Loading
            | Self::ReadOnly
            | Self::Moved
            | Self::Full
            | Self::Unsafe
            | Self::Login
            | Self::Busy => false,
            Self::Forbidden | Self::Other => error.code().is_none() || detail(error).contains("script: "),
        }
    }

    /// Whether the same call can succeed a moment later. False for a timeout: the caller has waited long enough.
    pub fn may_pass_soon(self, error: &RedisError) -> bool {
        match self {
            Self::Unreachable => !error.is_timeout(),
            Self::Loading | Self::ReadOnly | Self::Moved => true,
            _ => false,
        }
    }
}

/// The server's message, or the whole error if there is none.
pub fn detail(error: &RedisError) -> String {
    error.detail().map_or_else(|| error.to_string(), str::to_owned)
}

/// Whether a server does not know the script that a call names by its hash.
pub fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
