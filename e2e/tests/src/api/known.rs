//! Differences that stay, each with its reason: `e2e/tests/api/known.yaml`, and for people `docs/differences.md`.

use crate::release::Release;
use anyhow::Context as _;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A difference with a reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    /// What it is about.
    pub(super) what: String,
    kubernetes: String,
    tutti: String,
    why: String,
    /// The release in which it is seen; all if there is none.
    only: Option<String>,
    /// `script/title` of requests to paths in their answers, both with `*` for anything.
    seen: BTreeMap<String, Vec<String>>,
}

/// The list, and which of its entries were met.
#[derive(Debug)]
pub(super) struct KnownList {
    entries: Vec<Known>,
    /// Answers that each entry explains a part of.
    met: Vec<usize>,
}

impl KnownList {
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Self::parse(&text).with_context(|| file.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let entries: Vec<Known> = serde_saphyr::from_str(text)?;
        for only in entries.iter().filter_map(|entry| entry.only.as_deref()) {
            only.parse::<Release>()?;
        }
        let met = vec![0; entries.len()];
        Ok(Self { entries, met })
    }

    /// True if this difference is listed, which is remembered.
    pub(super) fn explains(&mut self, release: Release, request: &str, path: &str) -> bool {
        let release = release.to_string();
        let mut explained = false;
        for (entry, met) in self.entries.iter().zip(&mut self.met) {
            let applies = entry.only.as_ref().is_none_or(|only| *only == release);
            let seen = entry.seen.iter().any(|(requests, paths)| {
                matches(requests, request) && paths.iter().any(|pattern| matches(pattern, path))
            });
            if applies && seen {
                *met += 1;
                explained = true;
            }
        }
        explained
    }

    /// What was met, how often and why it is so.
    pub(super) fn met(&self) -> impl Iterator<Item = String> {
        let met = self.entries.iter().zip(&self.met).filter(|(_, met)| **met > 0);
        met.map(|(entry, times)| {
            let Known { what, kubernetes, tutti, why, .. } = entry;
            format!("{what} ({times} places). Kubernetes: {kubernetes} Tutti: {tutti} Why: {why}")
        })
    }

    /// Entries that nothing met although they are about one of these releases: they are mended and must go.
    pub(super) fn stale(&self, releases: &[Release]) -> Vec<&str> {
        let tried = |entry: &Known| {
            let only = entry.only.as_deref();
            only.is_none_or(|only| releases.iter().any(|release| release.to_string() == only))
        };
        let unmet = self.entries.iter().zip(&self.met).filter(|(entry, met)| **met == 0 && tried(entry));
        unmet.map(|(entry, _)| entry.what.as_str()).collect()
    }
}

/// True if a text fits a pattern in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.into_iter().any(|at| matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- begin: made from e2e/tests/api/known.yaml -->\n";
    const END: &str = "<!-- end -->\n";

    fn rendered(list: &KnownList) -> String {
        let mut out = "\n| what | kube-apiserver | Tutti | why |\n|---|---|---|---|\n".to_owned();
        for entry in &list.entries {
            let release = entry.only.as_ref().map_or_else(String::new, |only| format!(" ({only} only)"));
            let cells = [
                format!("{}{release}", entry.what),
                entry.kubernetes.clone(),
                entry.tutti.clone(),
                entry.why.clone(),
            ];
            out.push_str(&format!("| {} |\n", cells.map(|cell| cell.trim().replace('\n', " ")).join(" | ")));
        }
        out.push('\n');
        out
    }

    #[test]
    fn the_document_lists_what_the_list_lists() -> anyhow::Result<()> {
        let list = KnownList::read(&super::super::known_file())?;
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/differences.md");
        let text = std::fs::read_to_string(&file)?;
        let (before, rest) =
            text.split_once(BEGIN).context("docs/differences.md has no place for the list")?;
        let (found, after) = rest.split_once(END).context("the list in docs/differences.md has no end")?;
        let expected = rendered(&list);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&file, [before, BEGIN, &expected, END, after].concat())?;
        } else {
            assert_eq!(found, expected, "run this test with UPDATE_EXPECT=1, and read what it wrote");
        }
        Ok(())
    }

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, text, fits) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*/b", "a/b", true),
            ("body.items[*].x", "body.items[12].x", true),
            ("body.items[*].x", "body.items[12].y", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} and {text}");
        }
    }

    #[test]
    fn an_entry_that_nothing_meets_is_stale_where_it_was_tried() -> anyhow::Result<()> {
        let mut list = KnownList::parse(
            "[{what: a, kubernetes: b, tutti: c, why: d, seen: {'pods/*': [body.x]}},
              {what: e, kubernetes: f, tutti: g, why: h, only: '1.36', seen: {'*': [code]}}]",
        )?;
        assert!(list.explains(Release::V1_37, "pods/one", "body.x"));
        assert!(!list.explains(Release::V1_37, "pods/one", "code"));
        assert_eq!(list.stale(&[Release::V1_37]), [""; 0]);
        assert_eq!(list.stale(&[Release::V1_36, Release::V1_37]), ["e"]);
        Ok(())
    }
}
