//! The table of settings is valid, and the checked-in reference page is the generated one.

use std::collections::BTreeSet;
use std::path::Path;

use switchyard_settings::{Environment, Given, Refused, SETTINGS, Sources, load, reference};

#[test]
fn defaults_are_valid_and_names_are_used_once() {
    let (mut keys, mut names, mut flags) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for setting in SETTINGS {
        for text in [setting.default, setting.min, setting.max].into_iter().flatten() {
            let shown = setting.check(text);
            assert_eq!(shown.as_deref(), Ok(text), "{} is not written as it is shown", setting.key);
        }
        assert!(keys.insert(setting.key) && names.insert(setting.env), "{} is there twice", setting.key);
        assert!(setting.env_also.is_none_or(|also| names.insert(also)), "{} is there twice", setting.key);
        assert!(
            setting.flag.is_none_or(|flag| flags.insert(flag.long)),
            "--{:?} is there twice",
            setting.flag
        );
        assert!(setting.doc.iter().any(|line| !line.trim().is_empty()), "{} has no text", setting.key);
    }
    // `load` panics if a setting without a default is not optional.
    let loaded = load(&Sources::default()).unwrap();
    assert!(loaded.iter().all(|(setting, value, _)| value == setting.default));
}

#[test]
fn the_later_source_wins() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("yard.toml");
    std::fs::write(&file, "data = \"/from/file\"\n[worker]\nslots = 3\nallow_commands = true\n").unwrap();
    let name = file.display().to_string();
    let environment =
        [("SWITCHYARD_SLOTS", "4"), ("SWITCHYARD_LISTEN", "127.0.0.1:1"), ("SWITCHYARD_WORKER_GRACE", "")];
    let flags = vec![Given { key: "listen", flag: "--listen", value: "127.0.0.1:2".to_owned() }];
    let sources = Sources { file: Some(file), environment: Environment::from(environment), flags };
    let loaded = load(&sources).unwrap();
    let from = |key| loaded.iter().find(|(setting, ..)| setting.key == key).unwrap().2.to_string();
    assert_eq!(loaded.settings.data, Path::new("/from/file"));
    assert_eq!(from("data"), format!("{name}:1"));
    assert_eq!((loaded.settings.slots.get(), from("worker.slots")), (4, "env SWITCHYARD_SLOTS".to_owned()));
    assert_eq!(from("worker.allow_commands"), format!("{name}:4"));
    assert_eq!((loaded.settings.listen.port(), from("listen")), (2, "flag --listen".to_owned()));
    assert_eq!(from("worker.grace"), "default");
}

#[test]
fn names_that_others_use_are_read_with_their_units() {
    let environment = [
        ("WORKER_POD_MESSAGES_BATCH_SIZE", "3"),
        ("CONSUMER_CLEANUP_INTERVAL_SECONDS", "90"),
        ("STREAM_CLEANUP_INTERVAL_MINUTES", "2"),
        ("REDIS_SEND_MESSAGE_RETRY_DELAY", "0.25"),
    ];
    let sources = Sources { environment: Environment::from(environment), ..Sources::default() };
    let settings = load(&sources).unwrap().settings;
    assert_eq!(settings.slots.get(), 3);
    assert_eq!(settings.consumer_cleanup_every.0.as_secs(), 90);
    assert_eq!(settings.stream_watch_every.0.as_secs(), 120);
    assert_eq!(settings.submit_retry_delay.0.as_millis(), 250);
    let both = [("WORKER_POD_MESSAGES_BATCH_SIZE", "3"), ("SWITCHYARD_SLOTS", "4")];
    let sources = Sources { environment: Environment::from(both), ..Sources::default() };
    assert_eq!(load(&sources).unwrap().settings.slots.get(), 4);
}

#[test]
fn a_file_that_is_overruled_is_still_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("yard.toml");
    std::fs::write(&file, "[worker]\nslots = 0\n").unwrap();
    let environment = Environment::from([("SWITCHYARD_SLOTS", "4")]);
    let refused = load(&Sources { file: Some(file), environment, flags: Vec::new() }).unwrap_err();
    let Refused::File { diagnostics, .. } = refused else { panic!("{refused:?}") };
    let place = diagnostics.first().position.unwrap();
    assert_eq!(
        (place.line, place.column, diagnostics.first().message.as_str()),
        (2, 9, "it must be at least 1")
    );
}

#[test]
fn the_example_of_the_page_is_a_settings_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("switchyard.toml");
    let page = reference();
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    std::fs::write(&file, example).unwrap();
    let loaded = load(&Sources { file: Some(file), ..Sources::default() }).unwrap();
    assert!(loaded.iter().all(|(setting, value, _)| value == setting.default));
    assert_eq!(
        loaded.iter().filter(|(.., from)| from.to_string().contains(".toml:")).count(),
        example.matches(" = ").count()
    );
}

#[test]
fn the_reference_page_is_the_one_checked_in() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/settings.md");
    if std::env::var_os("SWITCHYARD_UPDATE_DOCS").is_some() {
        std::fs::write(&path, reference()).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        checked_in == reference(),
        "docs/reference/settings.md is old: run this test with SWITCHYARD_UPDATE_DOCS=1"
    );
}
