//! Settings: their sources, how they are shown, and invalid values.

use crate::harness::{HELLO, Sandbox, assert_transcript, transcript};

#[test]
fn every_value_is_shown_with_where_it_came_from() {
    let sandbox = Sandbox::with(&[(
        "switchyard.toml",
        "server = \"http://127.0.0.1:9\"\n\n[worker]\nslots = 4\ngrace = \"90s\"\n",
    )]);
    let mut command = sandbox.command(&["config", "--log-format", "json", "-v"]);
    command.env_remove("SWITCHYARD_SERVER");
    command.env("SWITCHYARD_SLOTS", "8").env("SWITCHYARD_API_KEY", "hush").env("SWITCHYARD_LISTEN", "");
    assert_transcript!(transcript(&command.output().unwrap()), @r#"
        exit 0
        --- stdout
        SETTING  VALUE  FROM
        data  ./switchyard-data  default
        redis.url  -  default
        redis.prefix  -  default
        checkpoints.namespace  default  default
        postgres.url  -  default
        stores.wait  30s  default
        stores.stuck_after  30s  default
        cas.url  -  default
        retention.keep_for  -  default
        retention.keep_runs  -  default
        retention.payload_grace  1d  default
        listen  127.0.0.1:7070  default
        server  http://127.0.0.1:9  switchyard.toml:1
        api_key  ********  env SWITCHYARD_API_KEY
        log.filter  info  flag -v
        log.format  json  flag --log-format
        worker.slots  8  env SWITCHYARD_SLOTS
        worker.types  -  default
        worker.name  -  default
        worker.lease  30s  default
        worker.deliveries  10  default
        plain.functions  -  default
        plain.lease  1m  default
        runs.stop_grace  30s  default
        worker.allow_commands  false  default
        command.env  -  default
        egress.allow  -  default
        worker.grace  1m30s  switchyard.toml:5
        worker.envoy_quit_url  -  default
        secrets.dir  -  default
        secrets.env_prefix  SWITCHYARD_SECRET_  default
        consumers.message_lock  1800  default
        consumers.cleanup_every  3600  default
        consumers.idle_min  -  default
        consumers.dry_run  false  default
        streams.lock  300  default
        streams.watch  true  default
        streams.watch_every  60  default
        submit.retries  3  default
        submit.retry_delay  0.5  default
        submit.retry_backoff  2  default
        kubernetes.pod_selector  -  default
        kubernetes.namespace  -  default
        http.body_max  16MiB  default
        http.cors_origins  -  default
        http.timeout  1m  default
        http.heartbeat  15s  default
        http.grace  10s  default
        metrics.listen  -  default
        otlp.endpoint  -  default
        otlp.headers  -  default
        otlp.service  switchyard  default
        otlp.sample  1  default
        --- stderr
    "#);
}

#[test]
fn it_is_data_too() {
    let sandbox = Sandbox::with(&[("yard.toml", "api_key = \"hush\"\n")]);
    let shown = sandbox.json(&["config", "--json", "--config", "yard.toml", "--data", "elsewhere"]);
    assert_eq!(shown["file"], "yard.toml");
    let settings = shown["settings"].as_array().unwrap();
    let by_key = |key: &str| settings.iter().find(|setting| setting["key"] == key).unwrap();
    let data = by_key("data");
    assert_eq!(
        (&data["value"], &data["from"], &data["flag"]),
        (&"elsewhere".into(), &"flag".into(), &"--data".into())
    );
    let key = by_key("api_key");
    assert_eq!((&key["value"], &key["from"], &key["line"]), (&"********".into(), &"file".into(), &1.into()));
    assert!(!shown.to_string().contains("hush"));
}

#[test]
fn mistakes_in_the_file_are_pointed_at() {
    let sandbox = Sandbox::with(&[(
        "switchyard.toml",
        "dta = \"x\"\nslots = 3\nworker = 5\nlisten = [1]\n[log]\nformat = \"xml\"\nfilters = \"info\"\n",
    )]);
    assert_transcript!(sandbox.transcript(&["config"]), @r#"
        exit 2
        --- stdout
        --- stderr
        switchyard.toml:1:1: there is no setting `dta`
          hint: did you mean `data`?
        switchyard.toml:2:1: there is no setting `slots`
          hint: did you mean `worker.slots`?
        switchyard.toml:3:10: `worker` is a table of settings, not a setting
          hint: settings in it: worker.slots, worker.types, worker.name, worker.lease, worker.deliveries, worker.allow_commands, worker.grace, worker.envoy_quit_url
        switchyard.toml:4:10: `listen` takes one value, not one of type array
          hint: expected an address with a port such as `127.0.0.1:7070` or `[::1]:7070`
        switchyard.toml:6:10: `xml` is not a log format
          hint: expected `pretty` or `json`
        switchyard.toml:7:1: there is no setting `log.filters`
          hint: did you mean `log.filter`?
        error: switchyard.toml is not valid: 6 problems
    "#);
    sandbox.file("switchyard.toml", "[worker]\nslots = 100000\ngrace = 5\n");
    assert_transcript!(sandbox.transcript(&["run", "hello.yaml"]), @r#"
        exit 2
        --- stdout
        --- stderr
        switchyard.toml:2:9: `100000` is out of bounds
          hint: expected a whole number, from 1 to 10000
        switchyard.toml:3:9: `5` is not a duration
          hint: add a unit: `5s` or `5ms`
        error: switchyard.toml is not valid: 2 problems
    "#);
    sandbox.file("switchyard.toml", "data = \"a\"\ndata = \"b\"\n");
    assert_transcript!(sandbox.transcript(&["runs", "list"]), @r#"
        exit 2
        --- stdout
        --- stderr
        switchyard.toml:2:1: duplicate key
        error: switchyard.toml is not valid: 1 problem
    "#);
    assert_transcript!(sandbox.transcript(&["config", "--config", "elsewhere.toml"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: the settings file elsewhere.toml cannot be read: No such file or directory (os error 2)
        hint: it is named by --config, by SWITCHYARD_CONFIG, or is ./switchyard.toml
    "#);
}

#[test]
fn bad_values_say_what_was_expected() {
    let sandbox = Sandbox::new();
    let with = |name: &str, value: &str| {
        transcript(&sandbox.command(&["config"]).env(name, value).output().unwrap())
    };
    assert_transcript!(with("SWITCHYARD_SLOTS", "many"), @r#"
        exit 2
        --- stdout
        --- stderr
        error: SWITCHYARD_SLOTS: `many` is not a whole number
        hint: expected a whole number, from 1 to 10000
    "#);
    assert_transcript!(with("SWITCHYARD_WORKER_GRACE", "2h"), @r#"
        exit 2
        --- stdout
        --- stderr
        error: SWITCHYARD_WORKER_GRACE: `2h` is out of bounds
        hint: expected a duration such as `500ms`, `30s` or `1h30m`, at most 1h
    "#);
    assert_transcript!(sandbox.transcript(&["up", "--listen", "here"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: invalid value 'here' for '--listen <ADDRESS>': `here` is not an address with a port (expected an address with a port such as `127.0.0.1:7070` or `[::1]:7070`)

        For more information, try '--help'.
    "#);
}

#[test]
fn unknown_names_in_the_environment_are_warned_about() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO)]);
    let mut command = sandbox.command(&["validate", "hello.yaml"]);
    // `command` nodes set `SWITCHYARD_RUN_ID`, so it causes no warning.
    command.env("SWITCHYARD_DTA", "x").env("SWITCHYARD_RUN_ID", "run_1");
    assert_transcript!(transcript(&command.output().unwrap()), @r#"
        exit 0
        --- stdout
        hello.yaml: ok, 2 nodes
        --- stderr
        warning: the environment sets SWITCHYARD_DTA, which means nothing
        hint: did you mean SWITCHYARD_DATA?
    "#);
}

#[test]
fn settings_are_what_commands_go_by() {
    let sandbox = Sandbox::with(&[("hello.yaml", HELLO), ("switchyard.toml", "data = \"kept\"\n")]);
    assert!(sandbox.output(&["run", "hello.yaml", "-i", "name=Ada"]).status.success());
    assert!(sandbox.path().join("kept/switchyard.db").exists());
    assert!(!sandbox.path().join("switchyard-data").exists());
}
