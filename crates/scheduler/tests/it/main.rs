//! The scheduler against the embedded cluster, through TLS and HTTP.

mod harness;
mod malformed;
mod stories;
mod workloads;
