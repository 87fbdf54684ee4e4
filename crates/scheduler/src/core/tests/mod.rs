//! The core against a simulated API server.

mod reporting;
mod sim;
mod story;
