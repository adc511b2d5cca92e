//! Open files: a connection is one.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Lets this process have as many connections as the system permits: the usual limit is far below it, for the sake of
/// programs that use `select`. Answers how many open files it may have, if there is a limit.
pub fn allow_many_connections() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%error, "the limit of open files stays as it is");
        }
    }
    getrlimit(Resource::Nofile).current
}
