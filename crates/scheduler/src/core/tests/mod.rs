//! The core against a simulated API server.

mod chaos;
mod reporting;
mod sim;
mod story;
