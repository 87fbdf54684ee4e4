//! The live loop around the engine: watch, decide, bind, explain.
//!
//! [`Core`] is the scheduler without IO; [`serve`] is the thin shell that connects it to a cluster.

pub mod config;
pub mod core;
pub mod error;
mod shell;

pub use crate::config::{Config, ConfigError, Settings};
pub use crate::core::Core;
pub use crate::error::Error;
pub use crate::shell::{Adjust, Clients, Dump, DumpError, Followed, follow, run, run_with, serve};
