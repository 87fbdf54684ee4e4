//! Runs the command and reads what it says.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder of its own for each test, removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("tutti-cli-test-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A command that runs. It is killed when a test ends before it does.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    /// Read all along, because a command that logs much would wait for its reader.
    stderr: Option<JoinHandle<String>>,
    pub(crate) said: Vec<String>,
}

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The command, with nothing of this machine's settings that it looks at.
pub(crate) fn tutti(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tutti"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for variable in ["NO_COLOR", "XDG_STATE_HOME", "HOME", "KUBECONFIG"] {
        command.env_remove(variable);
    }
    command
}

/// Runs a command that ends by itself.
pub(crate) fn run(arguments: &[&str]) -> Ended {
    Running::start(tutti(arguments)).wait()
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut errors = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = errors.read_to_string(&mut text);
            text
        });
        Self { child, lines, stderr: Some(stderr), said: Vec::new() }
    }

    /// Reads lines up to the first that has `words` in it.
    pub(crate) fn wait_for_line(&mut self, words: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if line.contains(words) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => panic!("never said {words:?}, only {:#?}", self.said),
                Err(RecvTimeoutError::Disconnected) => {
                    let stderr = self.stderr();
                    panic!("ended without saying {words:?}, only {:#?} and {stderr}", self.said);
                }
            }
        }
    }

    fn stderr(&mut self) -> String {
        self.stderr.take().and_then(|reader| reader.join().ok()).unwrap_or_default()
    }

    /// Sends a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    pub(crate) fn wait(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "never ended; said {:#?}", self.said);
            std::thread::sleep(Duration::from_millis(5));
        };
        let stderr = self.stderr();
        let mut said = std::mem::take(&mut self.said);
        said.extend(self.lines.iter());
        Ended { status, stdout: said.join("\n"), stderr }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
