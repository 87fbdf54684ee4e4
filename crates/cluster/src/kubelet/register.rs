//! How simulated nodes get into a cluster.

use super::NodeTemplate;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::core::{ApiResource, DynamicObject};

/// Creates a node as its kubelet would: complete, and Ready as of now.
pub async fn create(client: &Client, node: &NodeTemplate) -> Result<(), kube::Error> {
    let nodes: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::erase::<Node>(&()));
    let object = serde_json::from_value(node.to_object(Timestamp::now())).map_err(kube::Error::SerdeError)?;
    nodes.create(&PostParams::default(), &object).await?;
    Ok(())
}
