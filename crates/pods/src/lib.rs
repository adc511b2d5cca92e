//! Lists the pods of workers in Kubernetes, selected by labels.
//!
//! This crate only lists pods; `switchyard-store-redis` decides which consumers are ghosts.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, Config};
use switchyard_store_redis::LivePods;

/// Time-outs of connecting to the API server, and of reading its response.
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(15);
/// Pods per page of the list.
const PAGE: u32 = 500;

/// The pods of a namespace that have certain labels.
#[derive(Clone)]
pub struct PodList {
    client: Client,
    namespace: String,
    selector: String,
}

impl fmt::Debug for PodList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client: _, namespace, selector } = self;
        f.debug_struct("PodList").field("namespace", namespace).field("selector", selector).finish()
    }
}

impl PodList {
    /// Configures the client from the pod's service account or from `KUBECONFIG`. Sends no request yet.
    pub async fn infer(selector: &str, namespace: Option<&str>) -> Result<Self, String> {
        let config =
            Config::infer().await.map_err(|error| format!("there is no Kubernetes here: {error}"))?;
        Self::new(config, selector, namespace)
    }

    /// Uses the default namespace of the configuration if `namespace` is `None`.
    pub fn new(mut config: Config, selector: &str, namespace: Option<&str>) -> Result<Self, String> {
        // Only the first call in a process installs a provider; all callers in this program install the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        config.connect_timeout = Some(CONNECT);
        config.read_timeout = Some(ANSWER);
        let namespace = namespace.unwrap_or(&config.default_namespace).to_owned();
        let client = Client::try_from(config)
            .map_err(|error| format!("the configuration of Kubernetes cannot be used: {error}"))?;
        Ok(Self { client, namespace, selector: selector.to_owned() })
    }
}

#[async_trait]
impl LivePods for PodList {
    async fn names(&self) -> Result<BTreeSet<String>, String> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut params = ListParams::default().labels(&self.selector).limit(PAGE);
        let mut names = BTreeSet::new();
        loop {
            let page = pods.list(&params).await.map_err(|error| {
                format!("pods with {} in namespace {}: {error}", self.selector, self.namespace)
            })?;
            names.extend(page.items.into_iter().filter(is_there).filter_map(|pod| pod.metadata.name));
            match page.metadata.continue_.filter(|more| !more.is_empty()) {
                Some(more) => params = params.continue_token(&more),
                None => return Ok(names),
            }
        }
    }
}

/// Whether the pod has not ended: Kubernetes lists ended pods until they are removed. A terminating pod still works.
fn is_there(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Succeeded" | "Failed"))
}
