//! Every format in which threads were ever stored can still be read, and the current one is the newest.

use std::collections::BTreeMap;

use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use switchyard_checkpoints::{Checkpoints, Get, Put, PutWrites, Stored, keys};
use switchyard_test_servers::redis::Redis;

/// Changed together with `keys::FORMAT`; older files are never edited.
const NEWEST: &str = include_str!("golden/format-1.json");

async fn connect(redis: &Redis) -> (Checkpoints, MultiplexedConnection) {
    let client = redis::Client::open(redis.url()).unwrap();
    let store = Checkpoints::open(&redis.url(), "golden").unwrap();
    (store, client.get_multiplexed_async_connection().await.unwrap())
}

/// Stores a thread that uses every feature.
async fn fill(store: &Checkpoints) {
    let mut first = Put::new("user:1", "", "c1");
    first.checkpoint("msgpack", b"\x81\xa1v\x04");
    first.metadata("msgpack", b"\x80");
    first.refer("x", &keys::version_number("1"));
    first.value("x", &keys::version_number("1"), "msgpack", b"\x2a");
    store.put(&first).await.unwrap();
    let mut second = Put::new("user:1", "", "c2");
    (second.parent, second.run, second.delta) =
        (Some("c1".to_owned()), Some("run-1".to_owned()), vec!["log".to_owned()]);
    second.checkpoint("msgpack", b"\x81\xa1v\x05");
    second.metadata("json", b"{}");
    second.refer("x", &keys::version_number("1"));
    second.refer("y/z", &keys::version_text("0001.ab"));
    second.value("y/z", &keys::version_text("0001.ab"), "bytes", b"\xff\x00");
    store.put(&second).await.unwrap();
    let mut child = Put::new("user:1", "sub:1|", "d1");
    child.checkpoint("msgpack", b"\x80");
    child.metadata("msgpack", b"\x80");
    store.put(&child).await.unwrap();
    let mut writes = PutWrites::new("user:1", "", "c2", "task", "~path");
    writes.write("x", "msgpack", b"\x07");
    writes.write("__interrupt__", "null", b"");
    store.put_writes(&writes).await.unwrap();
    let mut again = PutWrites::new("user:1", "", "c2", "task", "~path");
    again.write("x", "msgpack", b"\x08");
    again.write("__interrupt__", "msgpack", b"\x09");
    store.put_writes(&again).await.unwrap();
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| std::ascii::escape_default(*byte)).map(char::from).collect()
}

fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        match (next, if next == '\\' { rest.next() } else { None }) {
            ('\\', Some('x')) => {
                let digits: String = rest.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(&digits, 16).unwrap());
            }
            ('\\', Some('n')) => bytes.push(b'\n'),
            ('\\', Some('r')) => bytes.push(b'\r'),
            ('\\', Some('t')) => bytes.push(b'\t'),
            ('\\', Some(other)) => bytes.push(u8::try_from(other).unwrap()),
            _ => bytes.push(u8::try_from(next).unwrap()),
        }
    }
    bytes
}

/// The stored keys and values, with the time of storing set to 0.
async fn stored(connection: &mut MultiplexedConnection) -> Value {
    let mut found = serde_json::Map::new();
    for key in keys::Keyspace::new("golden").unwrap().thread("user:1").all() {
        let kind: String = redis::cmd("TYPE").arg(key).query_async(connection).await.unwrap();
        let content = match kind.as_str() {
            "hash" => {
                let pairs: BTreeMap<Vec<u8>, Vec<u8>> =
                    redis::cmd("HGETALL").arg(key).query_async(connection).await.unwrap();
                json!(
                    pairs
                        .iter()
                        .map(|(k, v)| (text(k), text(&timeless(key, k, v))))
                        .collect::<BTreeMap<_, _>>()
                )
            }
            "zset" => {
                let members: Vec<Vec<u8>> =
                    redis::cmd("ZRANGE").arg(key).arg(0).arg(-1).query_async(connection).await.unwrap();
                json!(members.iter().map(|member| text(member)).collect::<Vec<_>>())
            }
            _ => {
                let members: Vec<Vec<u8>> =
                    redis::cmd("SMEMBERS").arg(key).query_async(connection).await.unwrap();
                json!({"set": members.iter().map(|member| text(member)).collect::<Vec<_>>()})
            }
        };
        found.insert(key.clone(), content);
    }
    found.into()
}

fn timeless(key: &str, field: &[u8], value: &[u8]) -> Vec<u8> {
    if key.ends_with(":meta") && field == b"at" {
        return b"0".to_vec();
    }
    if key.ends_with(":data") {
        // A seq below 128 is one byte, a time in milliseconds is nine.
        return [&value[..1], &[0], &value[10..]].concat();
    }
    value.to_vec()
}

async fn restore(connection: &mut MultiplexedConnection, golden: &Value) {
    for (key, content) in golden.as_object().unwrap() {
        let mut cmd = redis::Cmd::new();
        match content {
            Value::Array(members) => {
                cmd.arg("ZADD").arg(key);
                members.iter().for_each(|member| {
                    cmd.arg(0).arg(bytes(member.as_str().unwrap()));
                });
            }
            Value::Object(fields) if fields.contains_key("set") => {
                cmd.arg("SADD").arg(key);
                fields["set"].as_array().unwrap().iter().for_each(|member| {
                    cmd.arg(bytes(member.as_str().unwrap()));
                });
            }
            Value::Object(fields) => {
                cmd.arg("HSET").arg(key);
                fields.iter().for_each(|(field, value)| {
                    cmd.arg(bytes(field)).arg(bytes(value.as_str().unwrap()));
                });
            }
            other => panic!("{other} in a golden file"),
        }
        cmd.exec_async(connection).await.unwrap();
    }
}

async fn check(store: &Checkpoints) {
    let get = async |ns: &str, id: Option<&str>| -> Stored {
        let get = Get {
            thread: "user:1".to_owned(),
            ns: ns.to_owned(),
            id: id.map(ToOwned::to_owned),
            refresh_ms: None,
        };
        store.get(&get).await.unwrap().unwrap()
    };
    let newest = get("", None).await;
    assert_eq!((newest.id.as_str(), newest.seq, newest.parent.as_deref()), ("c2", 2, Some("c1")));
    assert_eq!(newest.run.as_deref(), Some("run-1"));
    assert_eq!(
        (newest.checkpoint.bytes.as_slice(), &*newest.metadata.format),
        (&b"\x81\xa1v\x05"[..], "json")
    );
    let values: Vec<_> =
        newest.values.iter().map(|(name, value)| (name.as_str(), value.bytes.as_slice())).collect();
    assert_eq!(values, [("x", &b"\x2a"[..]), ("y/z", b"\xff\x00")]);
    let writes: Vec<_> = newest.writes.iter().map(|each| (each.index, each.value.bytes.as_slice())).collect();
    assert_eq!(writes, [(-3, &b"\x09"[..]), (0, b"\x07")]);
    assert_eq!(get("", Some("c1")).await.values.len(), 1);
    assert_eq!(get("sub:1|", None).await.id, "d1");
}

#[tokio::test]
async fn what_is_stored_today_is_the_newest_file() {
    let redis = Redis::start();
    let (store, mut connection) = connect(&redis).await;
    fill(&store).await;
    let found = stored(&mut connection).await;
    let golden: Value = serde_json::from_str(NEWEST).unwrap();
    assert_eq!(found, golden, "it is now:\n{}", serde_json::to_string_pretty(&found).unwrap());
    check(&store).await;
}

#[tokio::test]
async fn every_file_can_be_read() {
    for golden in [NEWEST] {
        let redis = Redis::start();
        let (store, mut connection) = connect(&redis).await;
        restore(&mut connection, &serde_json::from_str(golden).unwrap()).await;
        check(&store).await;
        // The thread can also be written to.
        let mut put = Put::new("user:1", "", "c3");
        put.checkpoint("msgpack", b"\x80");
        put.metadata("msgpack", b"\x80");
        assert_eq!(store.put(&put).await.unwrap(), 4);
    }
}
