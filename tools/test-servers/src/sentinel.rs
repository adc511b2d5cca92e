//! A private Redis Sentinel for a test, which watches one master.

use std::process::Child;

use tempfile::TempDir;

use crate::free_port;
use crate::redis::{end, launch};

/// The name of the master, for every test.
pub const SERVICE: &str = "main";

/// A sentinel on a TCP port, stopped and removed when this is dropped or the process ends.
#[derive(Debug)]
pub struct Sentinel {
    port: u16,
    keeper: Option<Child>,
    /// The sentinel rewrites its configuration in this folder.
    _folder: TempDir,
}

impl Sentinel {
    /// Watches the Redis on this port of 127.0.0.1, with a quorum of one.
    pub fn watch(master_port: u16) -> Self {
        let folder = tempfile::Builder::new().prefix("switchyard-sentinel-").tempdir().expect("a folder");
        let (port, config) = (free_port(), folder.path().join("sentinel.conf"));
        let lines = format!("port {port}\nsentinel monitor {SERVICE} 127.0.0.1 {master_port} 1\n");
        std::fs::write(&config, lines).expect("the folder is there");
        let config = config.display().to_string();
        let keeper = launch(folder.path(), &[&config, "--sentinel"], "+monitor");
        Self { port, keeper: Some(keeper), _folder: folder }
    }

    /// The address of the sentinel itself.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The sentinel URL of the master. Its first sentinel does not exist.
    pub fn master_url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{}/{SERVICE}", self.port)
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            end(keeper, "crash");
        }
    }
}
