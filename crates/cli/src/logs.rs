//! Logs go to standard error, so that standard output stays readable.

use crate::console::{self, Console};
use clap::{ArgAction, Args, ValueEnum};
use tracing_subscriber::EnvFilter;

/// What to log, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logs")]
pub(crate) struct LogArgs {
    /// What to log: off, error, warn, info, debug, trace, or a filter such as `warn,tutti_cluster=debug`.
    /// Default: info for `tutti scheduler` and `tutti controller`, warn for everything else.
    #[arg(long, global = true, value_name = "LEVEL", value_parser = filter)]
    log_level: Option<String>,
    /// Log more: -v is info, -vv is debug, -vvv is trace. Overrides --log-level.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    /// One line of text or one JSON object for each entry.
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text")]
    log_format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl LogArgs {
    /// Where to greet whoever has started something that logs. Programs that read logs want nothing else beside them.
    pub(crate) fn console(&self) -> Console {
        match self.log_format {
            Format::Text => Console::new(),
            Format::Json => Console::silent(),
        }
    }

    fn filter(&self, default_level: &str) -> String {
        let text = match self.verbose {
            0 => self.log_level.as_deref().unwrap_or(default_level),
            1 => "info",
            // Clients log every request at these levels; that would hide everything else.
            2 => "debug,h2=info,hyper_util=info,rustls=info,tower=info",
            _ => "trace,h2=debug,hyper_util=debug,rustls=debug",
        };
        // A watch that is refused logs it at every try; whoever runs it says it once, and what it means.
        let says_it = self.verbose > 1 || text.contains("kube_runtime");
        if says_it { text.to_owned() } else { format!("{text},kube_runtime::watcher=off") }
    }
}

/// Checks a filter, so that a wrong one is refused together with all other wrong arguments.
fn filter(text: &str) -> Result<String, String> {
    let wrong = |word: &str| {
        format!("{word:?} is none of off, error, warn, info, debug, trace, and no filter like target=level")
    };
    // A bare word that is no level would be taken for the name of a target and silently log nothing.
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    for part in text.split(',') {
        let is_level = levels.iter().any(|level| part.eq_ignore_ascii_case(level));
        if !is_level && !part.contains(['=', '[']) {
            return Err(wrong(part));
        }
    }
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|_| wrong(text))
}

/// Starts logging. Called once; a second call changes nothing.
pub(crate) fn init(args: &LogArgs, default_level: &str) {
    // The filter was checked when arguments were parsed; falling back is for the compiler.
    let filter = EnvFilter::try_new(args.filter(default_level)).unwrap_or_else(|_| EnvFilter::new("warn"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(console::colours_for(&std::io::stderr()));
    let _ = match args.log_format {
        Format::Text => logs.try_init(),
        Format::Json => logs.json().try_init(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_once_is_not_said_again_by_the_client_unless_it_is_asked_for() {
        let filter = |level: Option<&str>, verbose| {
            let log_level = level.map(str::to_owned);
            LogArgs { log_level, verbose, log_format: Format::Text }.filter("warn")
        };
        assert_eq!(filter(None, 0), "warn,kube_runtime::watcher=off");
        assert_eq!(filter(Some("info"), 0), "info,kube_runtime::watcher=off");
        assert_eq!(filter(Some("warn,kube_runtime=debug"), 0), "warn,kube_runtime=debug");
        assert!(!filter(None, 2).contains("kube_runtime"));
    }

    #[test]
    fn levels_and_filters_are_accepted_and_typos_are_not() {
        for good in ["off", "warn", "DEBUG", "warn,tutti_cluster=debug", "tutti=trace"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for wrong in ["loud", "", "warn,loud", "tutti=loud"] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
    }
}
