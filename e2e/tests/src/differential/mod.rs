//! kube-scheduler's own plugins against the engine: for a single pod both must accept the same nodes and give them the
//! same scores, plugin by plugin, and the node that the engine chooses must be among those that kube-scheduler scores
//! highest.

mod generate;
mod judge;
mod known;
mod scores;
mod shrink;
mod tutti;

use crate::random::Random;
use crate::release::Release;
use crate::runner::say;
use crate::{Binary, DifferentialArgs};
use generate::Question;
use judge::{Judge, Verdict};
use std::collections::BTreeMap;
use std::time::Instant;
use tutti::Translated;

/// Disagreements that are shown in full; after that they are only counted.
const SHOWN_MAX: usize = 5;

/// Asks everybody about all cases on every release; true if nobody disagrees.
pub(crate) fn run(binaries: &[Binary], args: &DifferentialArgs) -> anyhow::Result<bool> {
    let mut agreed = true;
    for binary in binaries {
        let start = Instant::now();
        let mut run = Run::new(binary.release, Judge::start(&binary.file)?);
        let cases = match args.case {
            Some(case) => case..case + 1,
            None => 0..args.cases,
        };
        for case in cases {
            run.case(args.seed, case)?;
        }
        say(&format!(
            "differential {}: {} in {:.1} s",
            binary.release,
            run.summary(args.seed),
            start.elapsed().as_secs_f64()
        ));
        agreed &= run.disagreements == 0;
    }
    Ok(agreed)
}

/// One release.
struct Run {
    release: Release,
    judge: Judge,
    cases: u64,
    disagreements: usize,
    /// Disagreements with a known reason, by reason.
    explained: BTreeMap<&'static str, u64>,
    accepted: u64,
    /// Nodes that were rejected, by plugin: a rule that never decides anything is not tested.
    rejected: BTreeMap<String, u64>,
    /// Cases in which a plugin's score told nodes apart.
    told_apart: BTreeMap<String, u64>,
}

impl Run {
    fn new(release: Release, judge: Judge) -> Self {
        Self {
            release,
            judge,
            cases: 0,
            disagreements: 0,
            explained: BTreeMap::new(),
            accepted: 0,
            rejected: BTreeMap::new(),
            told_apart: BTreeMap::new(),
        }
    }

    fn case(&mut self, seed: u64, case: u64) -> anyhow::Result<()> {
        let question = generate::question(&mut Random::of_case(seed, case));
        let in_case = |error: anyhow::Error| error.context(format!("case {case} of seed {seed}"));
        let verdict = self.judge.ask(&question).map_err(in_case)?;
        self.cases += 1;
        self.accepted += verdict.feasible.len() as u64;
        for rejection in verdict.rejected.values() {
            *self.rejected.entry(rejection.plugin.clone()).or_default() += 1;
        }
        for plugin in scores::that_tell_apart(&verdict.scores) {
            *self.told_apart.entry(plugin.to_owned()).or_default() += 1;
        }
        let Some(first) = disagreement(&question, &verdict).map_err(in_case)? else {
            return Ok(());
        };
        if let Some(reason) = known::explanation(self.release, &question, &first) {
            *self.explained.entry(reason).or_default() += 1;
            return Ok(());
        }
        self.disagreements += 1;
        if self.disagreements > SHOWN_MAX {
            return Ok(());
        }
        let (judge, release) = (&mut self.judge, self.release);
        let mut differs = |question: &Question| {
            // A question that became invalid is no question.
            let Ok(verdict) = judge.ask(question) else { return false };
            let found = disagreement(question, &verdict).ok().flatten();
            found.is_some_and(|found| {
                found.about == first.about && known::explanation(release, question, &found).is_none()
            })
        };
        let smallest = shrink::shrink(&question, &mut differs);
        let verdict = self.judge.ask(&smallest)?;
        let what = disagreement(&smallest, &verdict)?.unwrap_or(first);
        say(&format!("DISAGREEMENT in case {case} of seed {seed}: {}", what.text));
        say(&format!("  made smaller: {}", serde_json::to_string(&smallest)?));
        Ok(())
    }

    fn summary(&self, seed: u64) -> String {
        let listed = |counts: &BTreeMap<String, u64>| {
            let counts: Vec<String> =
                counts.iter().map(|(plugin, count)| format!("{plugin} {count}")).collect();
            counts.join(", ")
        };
        let explained: Vec<String> =
            self.explained.iter().map(|(reason, count)| format!(" ({count} explained: {reason})")).collect();
        format!(
            "{} cases of seed {seed}, {} disagreements{}; nodes accepted {}, rejected by {}; told apart by {}",
            self.cases,
            self.disagreements,
            explained.concat(),
            self.accepted,
            listed(&self.rejected),
            listed(&self.told_apart)
        )
    }
}

/// What two do not agree on.
pub(crate) struct Disagreement {
    about: Topic,
    /// Who says what.
    text: String,
}

/// What a disagreement is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Topic {
    /// Which nodes will do.
    Feasible,
    /// How a plugin scores them.
    Score(String),
    /// Which is taken.
    Choice,
}

/// The first thing that is not said alike.
fn disagreement(question: &Question, verdict: &Verdict) -> anyhow::Result<Option<Disagreement>> {
    let translated = Translated::new(question)?;
    let by_engine = translated.by_engine();
    let by_validator = translated.by_validator(question);
    if by_engine != verdict.feasible || by_validator.as_ref().is_some_and(|names| *names != verdict.feasible)
    {
        let by_validator = by_validator.map_or_else(|| "no opinion".to_owned(), |names| format!("{names:?}"));
        let text = format!(
            "kube-scheduler accepts {:?}, the engine {by_engine:?}, the validator {by_validator}; kube-scheduler rejects {}",
            verdict.feasible,
            verdict.why_not()
        );
        return Ok(Some(Disagreement { about: Topic::Feasible, text }));
    }
    if let Some((plugin, text)) = scores::difference(&verdict.scores, &translated.scores()) {
        return Ok(Some(Disagreement { about: Topic::Score(plugin), text }));
    }
    let (choice, best) = (translated.choice(), verdict.best());
    // Among nodes that are liked equally either may choose as it likes.
    if choice.as_deref().map_or(best.is_empty(), |choice| best.contains(&choice)) {
        return Ok(None);
    }
    let text =
        format!("the engine chooses {choice:?}, kube-scheduler likes {best:?} best: {:?}", verdict.scores);
    Ok(Some(Disagreement { about: Topic::Choice, text }))
}
