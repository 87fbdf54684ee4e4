//! The embedded cluster: a Kubernetes-compatible API server over an in-memory store, and simulated nodes.
//!
//! It is for trying, developing and testing. Production is a real Kubernetes.

pub mod cluster;
pub mod controllers;
mod custom;
pub mod discovery;
pub mod error;
pub mod kinds;
pub mod kubeconfig;
pub mod kubelet;
pub mod listener;
pub mod ownership;
pub mod patch;
pub mod registry;
mod reviews;
pub mod schema;
pub mod selector;
pub mod server;
pub mod store;
pub mod table;
pub mod tls;
