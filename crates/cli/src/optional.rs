//! Parts of the program that are cargo features, because they take long to build and few deployments need them. If a
//! setting needs a feature that is not built in, the failure names the command that builds it in.

use std::sync::Arc;

use switchyard_store::Cas;
use switchyard_store_redis::LivePods;

use crate::errors::Failure;

#[cfg(feature = "object-stores")]
pub(crate) fn object_cas(url: &str) -> Result<Arc<dyn Cas>, Failure> {
    match switchyard_cas_objects::ObjectCas::open(url, switchyard_settings::aws()) {
        Ok(cas) => Ok(Arc::new(cas)),
        Err(error) => Err(Failure::usage(format!("cas.url: {error}"))),
    }
}

#[cfg(not(feature = "object-stores"))]
pub(crate) fn object_cas(url: &str) -> Result<Arc<dyn Cas>, Failure> {
    Err(not_built_in(&format!("cas.url is `{url}`"), "object stores", "object-stores"))
}

#[cfg(feature = "kubernetes")]
pub(crate) async fn pods(selector: &str, namespace: Option<&str>) -> Result<Arc<dyn LivePods>, Failure> {
    match switchyard_pods::PodList::infer(selector, namespace).await {
        Ok(list) => Ok(Arc::new(list)),
        Err(why) => Err(Failure::usage(why)
            .hint("`kubernetes.pod_selector` is set: this must run in a pod, or KUBECONFIG name a file")),
    }
}

#[cfg(not(feature = "kubernetes"))]
#[expect(clippy::unused_async, reason = "asking Kubernetes awaits")]
pub(crate) async fn pods(selector: &str, _: Option<&str>) -> Result<Arc<dyn LivePods>, Failure> {
    Err(not_built_in(&format!("kubernetes.pod_selector is `{selector}`"), "Kubernetes", "kubernetes"))
}

#[cfg(not(all(feature = "object-stores", feature = "kubernetes")))]
fn not_built_in(setting: &str, part: &str, feature: &str) -> Failure {
    Failure::usage(format!("{setting}, and this program was built without {part}"))
        .hint(format!("build it with `cargo build --release --features {feature}`"))
}
