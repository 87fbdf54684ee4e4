//! The scheduler against the embedded cluster, through TLS and HTTP.

mod composites;
mod discovery;
mod faulty;
mod hand_over;
mod harness;
mod http_soak;
mod journal;
mod malformed;
mod optional;
mod profiles;
mod random_stories;
mod shape;
mod sim;
mod stories;
mod topology;
mod truth_table;
mod user;
mod workload_parts;
