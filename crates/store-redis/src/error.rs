//! Errors of Redis, split by what an operator can do about them.

use redis::RedisError;
use switchyard_store::StoreError;

/// All of it can pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedisFailure {
    /// It cannot be reached, or does not answer in time.
    Unreachable,
    /// It was started a moment ago and reads its data.
    Loading,
    /// It has become a replica: another server is the master now.
    ReadOnly,
    /// It has reached `maxmemory` and evicts nothing.
    Full,
    /// It cannot write its file, or has too few replicas, and takes no writes until it can.
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
    pub(crate) fn of(error: &RedisError) -> Self {
        if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() {
            return Self::Unreachable;
        }
        // A login that fails while connecting is told in the crate's words, with the server's behind them.
        let code = match error.code() {
            Some(code) => code.to_owned(),
            None => about(error).split([' ', ':']).next().unwrap_or_default().to_owned(),
        };
        match &*code {
            "LOADING" => Self::Loading,
            "READONLY" | "MASTERDOWN" => Self::ReadOnly,
            "OOM" => Self::Full,
            "MISCONF" | "NOREPLICAS" => Self::Unsafe,
            "NOAUTH" | "WRONGPASS" => Self::Login,
            "NOPERM" => Self::Forbidden,
            "BUSY" => Self::Busy,
            _ if error.kind() == redis::ErrorKind::AuthenticationFailed => Self::Login,
            _ => Self::Other,
        }
    }

    /// Whether another connection may lead somewhere else, or is needed to be let in again.
    pub(crate) fn ends_the_connection(self) -> bool {
        matches!(self, Self::Unreachable | Self::ReadOnly | Self::Login)
    }

    /// In metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Loading => "loading",
            Self::ReadOnly => "read_only",
            Self::Full => "full",
            Self::Unsafe => "unsafe",
            Self::Login => "login",
            Self::Forbidden => "forbidden",
            Self::Busy => "busy",
            Self::Other => "other",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::Unreachable => "does not answer",
            Self::Loading => "was started and still reads its data",
            Self::ReadOnly => "is a replica and takes no writes",
            Self::Full => "has no memory left (`maxmemory`)",
            Self::Unsafe => "takes no writes until it can keep them safely",
            Self::Login => "does not accept the user or password",
            Self::Forbidden => "does not let its user do that (docs/operating/redis.md lists the rights)",
            Self::Busy => "is busy with another client's script",
            Self::Other => "refused",
        }
    }

    /// What a caller is told. Never the password.
    pub(crate) fn told(self, location: &str, error: &RedisError) -> StoreError {
        StoreError::unavailable(format!("Redis at {location} {}: {}", self.sentence(), about(error)))
    }

    /// Whether a call that was sent, and was answered with this or not at all, can have changed something. Redis refuses
    /// before it begins, except for an error inside a script, which may come after other commands of the same script.
    /// That it takes no writes (or has no memory) it says at the first write of a script, not in its middle.
    pub(crate) fn may_have_changed_something(self, error: &RedisError) -> bool {
        match self {
            Self::Unreachable => true,
            Self::Loading | Self::ReadOnly | Self::Full | Self::Unsafe | Self::Login | Self::Busy => false,
            Self::Forbidden | Self::Other => error.code().is_none() || about(error).contains("script: "),
        }
    }
}

pub(crate) fn about(error: &RedisError) -> String {
    error.detail().map_or_else(|| error.to_string(), str::to_owned)
}
