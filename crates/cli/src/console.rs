//! What people read: lines on standard output, with colours where they can be seen.

use std::io::{IsTerminal, Write as _};

/// Standard output. A reader who went away (`tutti up | head`) is no reason to end a cluster, so errors of
/// writing are passed over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Console {
    colours: bool,
    silent: bool,
}

/// Roles of text, each with its colour.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Style {
    /// A name or a headline.
    Strong,
    /// Beside the point.
    Faint,
    /// It works.
    Good,
    /// It waits.
    Waiting,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Good => "32",
            Self::Waiting => "33",
        }
    }
}

impl Console {
    /// Colours where they can be seen.
    pub(crate) fn new() -> Self {
        Self { colours: colours_for(&std::io::stdout()), silent: false }
    }

    /// Prints nothing.
    pub(crate) fn silent() -> Self {
        Self { colours: false, silent: true }
    }

    /// Prints one line.
    pub(crate) fn line(self, text: &str) {
        if self.silent {
            return;
        }
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{text}");
        let _ = out.flush();
    }

    /// `text` in the colour of its role.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if self.colours { format!("\x1b[{}m{text}\x1b[0m", style.code()) } else { text.to_owned() }
    }
}

/// Colours only on a terminal that can show them, and only if the user did not decline (no-color.org).
pub(crate) fn colours_for(stream: &impl IsTerminal) -> bool {
    let declined = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    stream.is_terminal() && !declined && !dumb
}

/// Prints one line on standard error.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// `1 node`, `3 nodes`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("{number} {noun}") } else { format!("{number} {noun}s") }
}

/// `text` as one word for a shell.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_text_stays_as_it_is() {
        let plain = Console::silent();
        assert_eq!(plain.paint(Style::Good, "ok"), "ok");
        let colourful = Console { colours: true, ..plain };
        assert_eq!(colourful.paint(Style::Good, "ok"), "\x1b[32mok\x1b[0m");
    }

    #[test]
    fn shells_read_paths_back_as_one_word() {
        assert_eq!(shell_word("/home/me/.kube-config_1"), "/home/me/.kube-config_1");
        assert_eq!(shell_word("/my files/it's"), r"'/my files/it'\''s'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("$HOME"), "'$HOME'");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!((count(1, "node"), count(0, "GPU")), ("1 node".into(), "0 GPUs".into()));
    }
}
