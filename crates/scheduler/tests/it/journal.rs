//! What the schedulers of many stories log at the same time, kept apart by story and shown only for one that breaks.

use std::io;
use std::sync::{Mutex, PoisonError};
use tracing::Span;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Layer as _, fmt};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Begins to write. What others log in this process is not kept.
pub(crate) fn open() {
    let targets = Targets::new()
        .with_target("tutti_scheduler", LevelFilter::DEBUG)
        .with_target(env!("CARGO_CRATE_NAME"), LevelFilter::INFO);
    let layer = fmt::layer().with_ansi(false).with_writer(|| Line).with_filter(targets);
    // Somebody else may have begun, who then has the lines.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer));
}

/// What is logged in this span belongs to a story.
pub(crate) fn story(seed: u64) -> Span {
    tracing::info_span!("story", seed)
}

/// All lines of a story.
pub(crate) fn of_story(seed: u64) -> String {
    let mark = format!("story{{seed={seed}}}: ");
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines.iter().filter(|line| line.contains(&mark)).map(|line| line.replace(&mark, "")).collect()
}

/// Takes one line at a time, as the formatter gives them.
struct Line;

impl io::Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line).into_owned();
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
