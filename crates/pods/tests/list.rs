//! `PodList` against a fake API server that serves the pod list as Kubernetes documents it.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::{Value, json};
use switchyard_pods::PodList;
use switchyard_store_redis::LivePods;

/// The requests that the server received: namespace, label selector, token.
type Asked = Arc<Mutex<Vec<(String, String, String)>>>;

fn pod(name: &str, phase: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "yard"}, "status": {"phase": phase}})
}

async fn pods(
    State(asked): State<Asked>,
    Path(namespace): Path<String>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let token = headers.get("authorization").map_or("", |value| value.to_str().unwrap()).to_owned();
    if token != "Bearer hush" {
        let refused = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 403,
            "reason": "Forbidden", "message": "pods is forbidden",
        });
        return (StatusCode::FORBIDDEN, Json(refused)).into_response();
    }
    asked.lock().push((namespace, query["labelSelector"].clone(), token));
    let (items, more) = match query.get("continue").map(String::as_str) {
        None => (json!([pod("w-1", "Running"), pod("w-2", "Failed")]), "next"),
        Some("next") => (json!([pod("w-3", "Pending")]), ""),
        Some(other) => panic!("{other} was never given out"),
    };
    let metadata = json!({"resourceVersion": "1", "continue": more});
    Json(json!({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items})).into_response()
}

async fn serve() -> (String, Asked) {
    let asked = Asked::default();
    let app = Router::new().route("/api/v1/namespaces/{namespace}/pods", get(pods)).with_state(asked.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (format!("http://{address}"), asked)
}

async fn config(server: &str, token: &str) -> kube::Config {
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "yard"}}],
    });
    let file = kube::config::Kubeconfig::from_yaml(&text.to_string()).unwrap();
    kube::Config::from_custom_kubeconfig(file, &Default::default()).await.unwrap()
}

#[tokio::test]
async fn lists_pods_by_labels_page_by_page() {
    let (server, asked) = serve().await;
    let list = PodList::new(config(&server, "hush").await, "app=worker", None).unwrap();
    let names = list.names().await.unwrap();
    assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), ["w-1", "w-3"]);
    let (namespace, selector, _) = asked.lock()[0].clone();
    assert_eq!((namespace.as_str(), selector.as_str()), ("yard", "app=worker"));

    let list = PodList::new(config(&server, "hush").await, "app=worker", Some("other")).unwrap();
    list.names().await.unwrap();
    assert_eq!(asked.lock().last().unwrap().0, "other");
}

#[tokio::test]
async fn says_what_was_asked_when_it_is_refused() {
    let (server, _) = serve().await;
    let list = PodList::new(config(&server, "wrong").await, "app=worker", None).unwrap();
    let error = list.names().await.unwrap_err();
    assert!(error.starts_with("pods with app=worker in namespace yard: "), "{error}");
    assert!(error.contains("forbidden"), "{error}");
}
