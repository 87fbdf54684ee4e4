//! The `tutti` command.

mod cluster_file;
mod console;
mod controller;
mod demo;
mod embedded_controller;
mod embedded_scheduler;
mod kubeconfig_path;
mod logs;
mod nodes;
mod observer;
mod replay;
mod replica;
mod scheduler;
mod signals;
mod topology;
mod up;
mod webhook_args;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A workload-aware scheduler for Kubernetes: a workload starts together or not at all.
#[derive(Debug, Parser)]
#[command(name = "tutti", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    logs: logs::LogArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::UpArgs),
    Nodes(nodes::NodesArgs),
    Scheduler(scheduler::SchedulerArgs),
    Controller(controller::ControllerArgs),
    Replay(replay::ReplayArgs),
    Topology(topology::TopologyArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    // Whoever runs something for a cluster wants to know what it does; a cluster to try talks on the console.
    let is_service = matches!(cli.command, Command::Scheduler(_) | Command::Controller(_));
    let default_level = if is_service { "info" } else { "warn" };
    logs::init(&cli.logs, default_level);
    let console = cli.logs.console();
    let result = match cli.command {
        Command::Up(args) => up::run(args).await,
        Command::Nodes(args) => nodes::run(args).await,
        Command::Scheduler(args) => scheduler::run(args, console).await,
        Command::Controller(args) => controller::run(args, console).await,
        Command::Replay(args) => replay::run(&args),
        Command::Topology(args) => topology::run(args).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn arguments_out_of_range_are_refused_with_the_range() {
        for (wrong, range) in [
            (["--nodes", "20001"], "20000"),
            (["--nodes", "-1"], "-1"),
            (["--nodes", "many"], "many"),
            (["--gpus", "1025"], "1024"),
            (["--node-grace", "0"], "3600"),
            (["--port", "65536"], "65535"),
            (["--log-level", "loud"], "loud"),
        ] {
            let error = Cli::try_parse_from(["tutti", "up", wrong[0], wrong[1]]).unwrap_err().to_string();
            assert!(error.contains(range), "{error}");
        }
    }

    #[test]
    fn simulated_nodes_need_a_cluster_and_signs_of_life() {
        assert!(Cli::try_parse_from(["tutti", "nodes"]).is_err());
        let with = |option: &str, value: &str| {
            Cli::try_parse_from(["tutti", "nodes", "--kubeconfig", "file", option, value]).is_ok()
        };
        assert!(with("--nodes", "0") && with("--heartbeat-seconds", "1"));
        assert!(!with("--nodes", "20001") && !with("--heartbeat-seconds", "0"));
        for action in ["fail", "restore"] {
            assert!(Cli::try_parse_from(["tutti", "nodes", action, "node-0", "node-1"]).is_ok());
            assert!(Cli::try_parse_from(["tutti", "nodes", action]).is_err(), "{action} whom?");
            assert!(Cli::try_parse_from(["tutti", "nodes", "--kubeconfig", "f", action, "n"]).is_err());
        }
    }

    #[test]
    fn replicas_elect_a_leader_unless_told_otherwise() {
        for command in ["scheduler", "controller"] {
            for good in [&["--leader-elect"][..], &["--leader-elect=false"], &["--http-address", "off"], &[]]
            {
                let arguments = [&["tutti", command], good].concat();
                assert!(Cli::try_parse_from(&arguments).is_ok(), "{arguments:?}");
            }
            for wrong in
                [&["--leader-elect=maybe"][..], &["--http-address", "here"], &["--leader-elect", "false"]]
            {
                let arguments = [&["tutti", command], wrong].concat();
                assert!(Cli::try_parse_from(&arguments).is_err(), "{arguments:?}");
            }
        }
    }

    #[test]
    fn groups_for_jobs_are_made_automatically_always_or_never() {
        for when in ["auto", "on", "off"] {
            assert!(Cli::try_parse_from(["tutti", "controller", "--job-integration", when]).is_ok());
        }
        assert!(Cli::try_parse_from(["tutti", "controller", "--job-integration", "maybe"]).is_err());
    }

    #[test]
    fn the_demo_does_not_mix_with_options_that_change_its_story() {
        for other in [
            &["--nodes", "5"][..],
            &["--gpus", "1"],
            &["--no-scheduler"],
            &["--no-controller"],
            &["--cluster", "f"],
        ] {
            let arguments = [&["tutti", "up", "--demo"], other].concat();
            assert!(Cli::try_parse_from(&arguments).is_err(), "{arguments:?}");
        }
        assert!(Cli::try_parse_from(["tutti", "up", "--exit-after-demo"]).is_err());
        assert!(Cli::try_parse_from(["tutti", "up", "--demo", "--exit-after-demo", "--port", "0"]).is_ok());
    }
}
