//! The API server from the outside: requests in, answers out, no sockets.

// A test that meets what it does not expect should stop there and then.
#![allow(clippy::unwrap_used)]

mod apply;
mod basics;
mod binding;
mod bodies;
mod client;
mod cluster;
mod controllers;
mod custom;
mod deletion;
mod fuzz;
mod harness;
mod hostile;
mod kinds;
mod managed;
mod owners;
mod priority;
mod python;
mod releases;
mod reviews;
mod watch;
