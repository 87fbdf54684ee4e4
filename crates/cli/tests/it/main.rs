//! The `tutti` command as users run it: a process, its output, its exit code.

// A test that meets what it does not expect should stop there and then.
#![allow(clippy::unwrap_used)]

mod broken;
mod controller;
mod demo;
mod deploy;
mod door;
mod gangs;
mod health;
mod jobs;
mod kills;
mod kubectl;
mod kubectl_script;
mod process;
mod replicas;
mod scheduler;
mod tidy;
mod topology;
mod up;
mod world;
