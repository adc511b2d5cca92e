//! Reaching the file size limit is an error and does not kill the process.

use std::process::Command;

use crate::harness::{Sandbox, transcript};

#[test]
fn a_file_that_may_not_grow_is_told() {
    let sandbox = Sandbox::with(&[(
        "large.yaml",
        "name: large\nnodes:\n  a: {type: transform, value: \"${{ lists.range(400000) }}\"}\n",
    )]);
    // The folder is created before the limit applies, and is smaller than the limit.
    sandbox.file("small.yaml", "name: small\nnodes: {a: {type: transform, value: 1}}\n");
    assert!(sandbox.output(&["run", "small.yaml"]).status.success());
    let plain = sandbox.command(&["run", "large.yaml"]);
    let mut limited = Command::new("sh");
    // 1 or 2 MiB, by the shell; the output has more than 2.
    limited.args(["-c", "ulimit -f 2048; exec \"$@\"", "sh"]).arg(plain.get_program()).args(plain.get_args());
    limited.current_dir(sandbox.path());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let output = limited.output().unwrap();
    let said = transcript(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("File too large"), "{said}");
    // The store is as usable as before.
    assert!(sandbox.output(&["run", "small.yaml"]).status.success());
}
