//! `init` and `dev`: a first workflow, and working on it.

use crate::harness::{Sandbox, assert_transcript};

#[test]
fn init_writes_what_runs_and_overwrites_nothing() {
    let sandbox = Sandbox::new();
    assert_transcript!(sandbox.transcript(&["init"]), @r"
        exit 0
        --- stdout
        hello.yaml
        switchyard.schema.json
        switchyard.toml
        --- stderr
        hint: run it with `switchyard run hello.yaml -i name=Ada`
        hint: work on it with `switchyard dev hello.yaml`
    ");
    assert!(sandbox.output(&["config"]).status.success(), "the settings file is one");
    let ran = sandbox.output(&["run", "hello.yaml", "-i", "name=Ada"]);
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "{\"greeting\":\"Hello, Ada!\",\"attempts\":2}\n",
        "{ran:?}"
    );
    let schema = sandbox.output(&["schema"]).stdout;
    assert_eq!(std::fs::read(sandbox.path().join("switchyard.schema.json")).unwrap(), schema);
    std::fs::remove_file(sandbox.path().join("hello.yaml")).unwrap();
    assert_transcript!(sandbox.transcript(&["init"]), @r"
        exit 2
        --- stdout
        --- stderr
        error: switchyard.schema.json is there already: nothing was written
        hint: name another folder: switchyard init DIR
    ");
    assert!(!sandbox.path().join("hello.yaml").exists());
    assert!(sandbox.output(&["init", "other/folder"]).status.success());
    assert!(sandbox.output(&["validate", "other/folder/hello.yaml"]).status.success());
}

const GREET: &str = "name: greet\nnodes:\n  a: {type: transform, value: 'Hello!'}\n";

#[test]
fn dev_registers_on_save_and_shows_runs() {
    let sandbox = Sandbox::with(&[("greet.yaml", GREET)]);
    let mut dev = sandbox.spawn(&["dev", "greet.yaml", "--listen", "127.0.0.1:0"]);
    let line = dev.wait_for("http://");
    let address = line.split_once("http://").unwrap().1.split('/').next().unwrap().to_owned();
    let server = format!("http://{address}");
    dev.wait_for("greet.yaml: greet version 1");
    let run = ["run", "greet", "--server", &server];
    assert!(sandbox.output(&run).status.success());
    dev.wait_for(" of greet");
    dev.wait_for("a succeeded");
    dev.wait_for("succeeded: \"Hello!\"");
    sandbox.file("greet.yaml", "name: greet\nnodes:\n  a: {type: transform, valeu: 1}\n");
    dev.wait_for("valeu");
    sandbox.file("greet.yaml", &GREET.replace("Hello", "Goodbye"));
    dev.wait_for("greet.yaml: greet version 2");
    assert_eq!(String::from_utf8_lossy(&sandbox.output(&run).stdout), "\"Goodbye!\"\n");
    dev.wait_for("succeeded: \"Goodbye!\"");
    dev.interrupt();
    assert_eq!(dev.ends().0, Some(0));
}

#[test]
fn dev_needs_a_file() {
    assert_transcript!(Sandbox::new().transcript(&["dev", "nothing.yaml"]), @r"
        exit 2
        --- stdout
        --- stderr
        error: there is no file or folder nothing.yaml
        hint: `switchyard init` writes a first workflow
    ");
}
