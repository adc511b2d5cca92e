//! The limit on open files; each connection uses one.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises this process's soft limit on open files to the hard limit. The default soft limit is far lower, for the sake
/// of programs that use `select`. Returns the limit in force, or `None` if there is none.
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
