//! `switchyard checkpoints …`, on its own Redis.

use switchyard_checkpoints::{Checkpoints, Put, PutWrites, keys};
use switchyard_test_servers::redis::Redis;

use crate::harness::{Sandbox, assert_transcript};

/// `{"step": 1, "source": "loop"}` as LangGraph's serializer writes it, with another step.
fn metadata(step: u8) -> Vec<u8> {
    [b"\x82\xa4step".as_slice(), &[step], b"\xa6source\xa4loop"].concat()
}

async fn filled(redis: &Redis) -> Checkpoints {
    let store = Checkpoints::open(&redis.url(), "default").unwrap();
    for (thread, count) in [("ada", 3_u8), ("bob:1", 1)] {
        for step in 0..count {
            let mut put = Put::new(thread, "", &format!("c{step}"));
            put.parent = step.checked_sub(1).map(|before| format!("c{before}"));
            put.run = Some("r1".to_owned());
            let version = keys::version_number(&step.to_string());
            put.checkpoint("msgpack", b"\x81\xa1v\x01");
            put.metadata("msgpack", &metadata(step));
            put.refer("total", &version);
            put.value("total", &version, "msgpack", &[step]);
            store.put(&put).await.unwrap();
        }
    }
    let mut writes = PutWrites::new("ada", "", "c2", "task-1", "path");
    writes.write("total", "msgpack", b"\xa3new");
    store.put_writes(&writes).await.unwrap();
    store
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_are_listed_shown_and_exported() {
    let redis = Redis::start();
    filled(&redis).await;
    let sandbox = Sandbox::new();
    let run = |words: &[&str]| sandbox.transcript(&[words, &["--redis", &redis.url()]].concat());
    assert_transcript!(run(&["checkpoints", "list"]), @r#"
        exit 0
        --- stdout
        THREAD  CHECKPOINTS  NAMESPACES  SIZE  WRITTEN  TTL
        ada  3  1  [SIZE]  [TIME]  -
        bob:1  1  1  [SIZE]  [TIME]  -
        --- stderr
    "#);
    assert_transcript!(run(&["checkpoints", "list", "--thread", "ada"]), @r#"
        exit 0
        --- stdout
        CHECKPOINT  NS  STORED  SOURCE  STEP  RUN
        c2  -  [TIME]  loop  2  r1
        c1  -  [TIME]  loop  1  r1
        c0  -  [TIME]  loop  0  r1
        --- stderr
    "#);
    assert_transcript!(run(&["checkpoints", "show", "ada"]), @r#"
        exit 0
        --- stdout
        thread  ada
        checkpoint  c2
        namespace  -
        parent  c1
        run  r1
        stored  [TIME]
        metadata  {"step":2,"source":"loop"}

        CHANNEL  FORMAT  SIZE  VALUE
        total  msgpack  [SIZE]  2

        PENDING TASK  IDX  CHANNEL  VALUE
        task-1  0  total  "new"
        --- stderr
    "#);
    assert_transcript!(run(&["checkpoints", "show", "ada", "--checkpoint", "c0", "--json"]), @r#"
        exit 0
        --- stdout
        {"thread_id":"ada","checkpoint_ns":"","checkpoint_id":"c0","parent_checkpoint_id":null,"run_id":"r1","seq":1,"stored_at_ms":[MS],"metadata":{"step":0,"source":"loop"},"checkpoint":{"v":1},"channel_values":{"total":0},"pending_writes":[]}
        --- stderr
    "#);
    assert_transcript!(run(&["checkpoints", "show", "eve"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no thread `eve`
        hint: switchyard checkpoints list
    "#);
    assert_transcript!(run(&["checkpoints", "show", "ada", "--checkpoint", "c9"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: thread `ada` has no checkpoint `c9` there
        hint: switchyard checkpoints list --thread ada
    "#);
    assert_transcript!(run(&["checkpoints", "export", "--thread", "bob:1"]), @r#"
        exit 0
        --- stdout
        {"thread_id":"bob:1","checkpoint_ns":"","checkpoint_id":"c0","parent_checkpoint_id":null,"run_id":"r1","seq":1,"stored_at_ms":[MS],"metadata":{"step":0,"source":"loop"},"checkpoint":{"v":1},"channel_values":{"total":0},"pending_writes":[]}
        --- stderr
        1 checkpoint of 1 thread
    "#);
    assert_transcript!(run(&["checkpoints", "list", "--older-than", "1h"]), @r#"
        exit 0
        --- stdout
        --- stderr
        no threads
    "#);
    assert_transcript!(run(&["checkpoints", "list", "--namespace", "other"]), @r#"
        exit 0
        --- stdout
        --- stderr
        no threads
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_are_purged() {
    let redis = Redis::start();
    let store = filled(&redis).await;
    let sandbox = Sandbox::new();
    let run = |words: &[&str]| sandbox.transcript(&[words, &["--redis", &redis.url()]].concat());
    assert_transcript!(run(&["checkpoints", "purge"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: which threads? say --thread ID, --older-than DURATION or --all
    "#);
    assert_transcript!(run(&["checkpoints", "purge", "--all", "--dry-run"]), @r#"
        exit 0
        --- stdout
        ada
        bob:1
        --- stderr
        2 threads would be purged
    "#);
    assert_transcript!(run(&["checkpoints", "purge", "--thread", "ada", "--keep-latest"]), @r#"
        exit 0
        --- stdout
        ada
        --- stderr
        2 checkpoints of 1 thread removed
    "#);
    assert_eq!(store.thread_info("ada").await.unwrap().unwrap().checkpoints, 1);
    assert_transcript!(run(&["checkpoints", "purge", "--older-than", "1h"]), @r#"
        exit 0
        --- stdout
        --- stderr
        0 threads deleted
    "#);
    assert_transcript!(run(&["checkpoints", "purge", "--older-than", "0s", "--json"]), @r#"
        exit 0
        --- stdout
        {"threads":["ada","bob:1"],"checkpoints_removed":2}
        --- stderr
    "#);
    assert_eq!(store.stats().await.unwrap().threads, 0);
    assert_transcript!(run(&["checkpoints", "purge", "--thread", "ada"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no thread `ada`
        hint: switchyard checkpoints list
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_are_shown() {
    let redis = Redis::start();
    let store = filled(&redis).await;
    store.set_ttl("ada", switchyard_checkpoints::Ttl::Own { ttl_ms: 3_600_000 }).await.unwrap();
    let sandbox = Sandbox::new();
    let stats = sandbox.json(&["checkpoints", "stats", "--json", "--redis", &redis.url()]);
    assert_eq!(stats["threads"], 2);
    assert_eq!(stats["checkpoints"], 4);
    assert_eq!(stats["values"], 4);
    assert_eq!(stats["tasks"], 1);
    assert_eq!((&stats["threads_with_ttl"], &stats["threads_without_ttl"]), (&1.into(), &1.into()));
    assert_eq!(stats["threads_with_uneven_ttl"], 0);
    assert_eq!(stats["largest_thread"], "ada");
    let shown = sandbox.transcript(&["checkpoints", "stats", "--redis", &redis.url()]);
    assert!(shown.contains("checkpoints     4"), "{shown}");
}

#[test]
fn nobody_there_is_said_with_where() {
    let sandbox = Sandbox::new();
    assert_transcript!(sandbox.transcript(&["checkpoints", "stats", "--redis", "redis://:secret@127.0.0.1:1"]), @r#"
        exit 3
        --- stdout
        --- stderr
        error: redis at redis://127.0.0.1:1 cannot be reached: Connection refused (os error 111)
        hint: say where Redis is with --redis URL or REDIS_URL
    "#);
    assert_transcript!(sandbox.transcript(&["checkpoints", "stats", "--redis", "127.0.0.1"]), @r#"
        exit 2
        --- stdout
        --- stderr
        error: the Redis URL must begin with redis://, rediss://, redis+unix://, redis+cluster:// or redis+sentinel://
    "#);
}
