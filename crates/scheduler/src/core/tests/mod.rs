//! The core against a simulated API server.

mod gangs;
mod leading;
mod replay;
mod reporting;
mod sim;
mod story;
mod volumes;
