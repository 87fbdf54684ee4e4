//! kube-scheduler's plugins as a process that answers questions.

use super::generate::Question;
use anyhow::{Context as _, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// An answer takes a millisecond; the first one waits for the plugins to be set up.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// What kube-scheduler thinks of each node.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Verdict {
    /// Why the API server would not have taken an object.
    #[serde(default)]
    pub(crate) invalid: String,
    /// Names of the nodes that pass, in order.
    #[serde(default)]
    pub(crate) feasible: Vec<String>,
    /// The others.
    #[serde(default)]
    pub(crate) rejected: BTreeMap<String, Rejection>,
    /// Scores of the nodes that pass, by plugin, as they enter the sum.
    #[serde(default)]
    pub(crate) scores: BTreeMap<String, BTreeMap<String, i64>>,
}

impl Verdict {
    /// Why the other nodes do not pass, for people.
    pub(crate) fn why_not(&self) -> String {
        let why = self.rejected.iter().map(|(node, rejection)| {
            let reasons = rejection.reasons.as_deref().unwrap_or_default().join("; ");
            format!("{node}: {} ({reasons})", rejection.plugin)
        });
        why.collect::<Vec<String>>().join(", ")
    }

    /// The nodes that kube-scheduler likes best, in order. It takes any of them.
    pub(crate) fn best(&self) -> Vec<&str> {
        let sum = |scores: &BTreeMap<String, i64>| scores.values().sum::<i64>();
        let highest = self.scores.values().map(sum).max();
        let best = self.scores.iter().filter(|(_, scores)| Some(sum(scores)) == highest);
        best.map(|(node, _)| node.as_str()).collect()
    }
}

/// Why a node does not pass.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Rejection {
    pub(crate) plugin: String,
    reasons: Option<Vec<String>>,
}

/// The process. It ends with this value.
pub(crate) struct Judge {
    child: Child,
    questions: ChildStdin,
    answers: Receiver<std::io::Result<String>>,
}

impl Judge {
    pub(crate) fn start(binary: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(binary)
            .arg("verdicts")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let questions = child.stdin.take().context("a child has an input")?;
        let lines = BufReader::new(child.stdout.take().context("a child has an output")?).lines();
        let (send, answers) = channel();
        // It ends when the process does, or when nobody listens any more.
        std::thread::spawn(move || {
            for line in lines {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, questions, answers })
    }

    pub(crate) fn ask(&mut self, question: &Question) -> anyhow::Result<Verdict> {
        let mut line = serde_json::to_vec(question)?;
        line.push(b'\n');
        self.questions.write_all(&line).context("the judge does not listen")?;
        let answer = match self.answers.recv_timeout(ANSWER_MAX) {
            Ok(answer) => answer?,
            Err(RecvTimeoutError::Disconnected) => bail!("the judge has ended: {:?}", self.child.wait()),
            Err(RecvTimeoutError::Timeout) => bail!("the judge did not answer in {} s", ANSWER_MAX.as_secs()),
        };
        let verdict: Verdict = serde_json::from_str(&answer)?;
        if !verdict.invalid.is_empty() {
            bail!("the API server would refuse this: {}", verdict.invalid);
        }
        Ok(verdict)
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
