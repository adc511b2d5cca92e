//! Log lines of a handler. This is the only test in this binary: tracing caches for the whole process whether a call
//! site has a subscriber, and another test without a subscriber could disable the lines of this one.

use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::Context;
use crate::testing::TestSwitchyard;

const NOTE: &str = "name: t\nnodes:\n  note: { type: function, function: note }\n";

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// On one thread, so that the subscriber of this test receives the handler's lines.
#[tokio::test(flavor = "current_thread")]
async fn what_a_handler_logs_carries_its_run_and_node() {
    let written = Written::default();
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _heard = tracing::subscriber::set_default(subscriber);
    let switchyard = TestSwitchyard::new().handler("note", |_: (), cx: Context| async move {
        cx.log("by the context");
        tracing::info!("by a macro");
        Ok(cx.node().to_owned())
    });
    let run = switchyard.start(NOTE, ()).await.unwrap();
    assert_eq!(run.run_to_end::<String>().await.unwrap().output().unwrap(), "note");
    let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    for message in ["by the context", "by a macro"] {
        let line = log.lines().find(|line| line.contains(message)).unwrap_or_else(|| panic!("{log}"));
        let fields = format!("handler=\"note\" run={} node=note attempt=1", run.id());
        assert!(line.contains(&fields), "{line}");
    }
}
