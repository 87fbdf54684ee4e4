//! The scheduler against the embedded cluster, through TLS and HTTP.

mod composites;
mod faulty;
mod hand_over;
mod harness;
mod http_soak;
mod journal;
mod malformed;
mod optional;
mod own_groups;
mod profiles;
mod sim;
mod soak;
mod stories;
mod topology;
mod truth_table;
mod workloads;
