//! Requests as text. `e2e/tests/api/README.md` describes the format; each file there is one script.

use crate::release::Release;
use anyhow::{Context as _, bail, ensure};
use http::Method;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A file of requests, sent one after the other.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) name: String,
    /// The release that it is about; all if there is none.
    pub(super) only: Option<Release>,
    /// A variable and its values: the script runs once with each.
    pub(super) each: Option<(String, Vec<String>)>,
    pub(super) requests: Vec<Request>,
}

/// One request, variables still in it.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) title: String,
    pub(super) only: Option<Release>,
    pub(super) method: Method,
    pub(super) path: String,
    /// What the real server answers. A script that is wrong about this tests something else than it says.
    pub(super) code: u16,
    /// Ask until the answer has that code.
    pub(super) eventually: bool,
    /// A watch that stays open, while later requests are sent, until it has told of an object of this name.
    pub(super) until: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    /// Variables to take from the answer: name, and path in the body.
    pub(super) save: Vec<(String, String)>,
    /// Fields that are compared although most scripts do not care.
    pub(super) keep: BTreeSet<String>,
    /// Compare only what both servers serve.
    pub(super) common: bool,
    pub(super) body: Option<Body>,
}

/// What is sent.
#[derive(Debug)]
pub(super) enum Body {
    /// YAML, sent as JSON.
    Yaml(String),
    /// As it is.
    Raw(String),
}

/// All scripts of a folder, in the order of their names.
pub(super) fn read_all(folder: &Path) -> anyhow::Result<Vec<Script>> {
    let mut scripts = Vec::new();
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "requests") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            scripts.push(Script::parse(name, &text).with_context(|| path.display().to_string())?);
        }
    }
    scripts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(scripts)
}

impl Script {
    pub(super) fn parse(name: String, text: &str) -> anyhow::Result<Self> {
        let (head, blocks) = text.split_once("### ").context("there is no request")?;
        let mut script = Self { name, only: None, each: None, requests: Vec::new() };
        let mut base = String::new();
        for line in head.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "only" => script.only = Some(rest.parse()?),
                "at" => base = rest.to_owned(),
                "each" => {
                    let (variable, values) = rest.split_once(" = ").context("want `each NAME = VALUES`")?;
                    let values = values.split_whitespace().map(str::to_owned).collect();
                    script.each = Some((variable.to_owned(), values));
                }
                _ => bail!("the head of a script has no {word:?}"),
            }
        }
        let mut titles = BTreeSet::new();
        for block in blocks.split("\n### ") {
            let title = block.lines().next().unwrap_or_default().trim();
            let request = Request::parse(block, &base).with_context(|| format!("request {title:?}"))?;
            ensure!(titles.insert(request.title.clone()), "two requests are called {title:?}");
            script.requests.push(request);
        }
        Ok(script)
    }
}

impl Request {
    fn parse(block: &str, base: &str) -> anyhow::Result<Self> {
        let mut lines = block.lines().filter(|line| !line.starts_with("# ")).peekable();
        let title = lines.next().unwrap_or_default().trim().to_owned();
        let only = lines.next_if(|line| line.starts_with("only ")).map(|line| line["only ".len()..].parse());
        let line = lines.next().context("there is no request line")?;
        let (request, answer) = line.split_once(" => ").context("want `METHOD PATH => CODE`")?;
        let (method, path) = request.split_once(' ').context("want `METHOD PATH => CODE`")?;
        let (code, when) = answer.split_once(' ').unwrap_or((answer, ""));
        let (eventually, until) = match (when, when.strip_prefix("until ")) {
            ("", _) => (false, None),
            ("eventually", _) => (true, None),
            (_, Some(name)) => (false, Some(name.to_owned())),
            (other, None) => bail!("an answer comes at once, `eventually` or `until NAME`, not {other:?}"),
        };
        let (method, media_type) = method_and_type(method)?;
        let mut this = Self {
            title,
            only: only.transpose()?,
            path: if path.starts_with('/') { path.to_owned() } else { format!("{base}/{path}") },
            code: code.parse().with_context(|| format!("code {code:?}"))?,
            eventually,
            until,
            headers: media_type.map(|t| ("Content-Type".to_owned(), t.to_owned())).into_iter().collect(),
            method,
            save: Vec::new(),
            keep: BTreeSet::new(),
            common: false,
            body: None,
        };
        let mut raw = false;
        while let Some(line) = lines.next_if(|line| is_option(line)) {
            if line == "raw" {
                raw = true;
            } else if line == "common" {
                this.common = true;
            } else if let Some(rest) = line.strip_prefix("save ") {
                let (name, path) = rest.split_once(" = ").context("want `save NAME = PATH`")?;
                this.save.push((name.to_owned(), path.to_owned()));
            } else if let Some(rest) = line.strip_prefix("keep ") {
                this.keep.insert(rest.to_owned());
            } else if let Some((name, value)) = line.split_once(": ") {
                this.headers.retain(|(other, _)| other != name);
                this.headers.push((name.to_owned(), value.to_owned()));
            }
        }
        let body = lines.collect::<Vec<_>>().join("\n");
        let body = body.trim();
        this.body = match (body.is_empty(), raw) {
            (true, _) => None,
            (false, true) => Some(Body::Raw(body.to_owned())),
            (false, false) => Some(Body::Yaml(body.to_owned())),
        };
        Ok(this)
    }
}

/// Lines between the request line and the body. Headers begin with a capital letter, which no field of Kubernetes does.
fn is_option(line: &str) -> bool {
    let header = line.starts_with(|c: char| c.is_ascii_uppercase()) && line.contains(": ");
    header || matches!(line, "raw" | "common") || line.starts_with("save ") || line.starts_with("keep ")
}

/// Patches are methods here, because their media type is what matters about them.
fn method_and_type(word: &str) -> anyhow::Result<(Method, Option<&'static str>)> {
    Ok(match word {
        "GET" => (Method::GET, None),
        "POST" => (Method::POST, Some("application/json")),
        "PUT" => (Method::PUT, Some("application/json")),
        "DELETE" => (Method::DELETE, Some("application/json")),
        "PATCH" => (Method::PATCH, None),
        "JSONPATCH" => (Method::PATCH, Some("application/json-patch+json")),
        "MERGE" => (Method::PATCH, Some("application/merge-patch+json")),
        "STRATEGIC" => (Method::PATCH, Some("application/strategic-merge-patch+json")),
        "APPLY" => (Method::PATCH, Some("application/apply-patch+yaml")),
        _ => bail!("{word:?} is no method"),
    })
}

/// Values by name; `<name>` in a request stands for them.
pub(super) type Variables = BTreeMap<String, String>;

/// Puts in the values of variables. What stands in angle brackets and is none is left alone.
pub(super) fn fill(text: &str, variables: &Variables) -> String {
    let mut out = text.to_owned();
    for (name, value) in variables {
        out = out.replace(&format!("<{name}>"), value);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_says_where_what_and_with_which_answer() -> anyhow::Result<()> {
        let text = "# Pods.\nonly 1.37\nat /api/v1/namespaces/<ns>\neach v = a b\n\n\
                    ### one is made\nPOST pods?dryRun=All => 201\nsave uid = metadata.uid\nAccept: text/x\n\
                    {metadata: {name: a}}\n\n\
                    ### it goes\nonly 1.36\nDELETE pods/a => 404 eventually\n\n\
                    ### nonsense\nMERGE /x => 400\nraw\n{\n";
        let script = Script::parse("pods".to_owned(), text)?;
        assert_eq!(script.only, Some(Release::V1_37));
        assert_eq!(script.each, Some(("v".to_owned(), vec!["a".to_owned(), "b".to_owned()])));
        let [made, gone, nonsense] = script.requests.as_slice() else { panic!("{script:?}") };
        assert_eq!((made.path.as_str(), made.code), ("/api/v1/namespaces/<ns>/pods?dryRun=All", 201));
        assert_eq!(made.save, [("uid".to_owned(), "metadata.uid".to_owned())]);
        assert_eq!(made.headers.len(), 2);
        assert!(matches!(&made.body, Some(Body::Yaml(text)) if text == "{metadata: {name: a}}"));
        assert_eq!((gone.only, gone.eventually, gone.body.is_none()), (Some(Release::V1_36), true, true));
        assert!(matches!(&nonsense.body, Some(Body::Raw(text)) if text == "{"), "{nonsense:?}");
        Ok(())
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            ("", "no request"),
            ("### a\nGET x\n", "CODE"),
            ("### a\nFETCH x => 200\n", "FETCH"),
            ("### a\nGET x => ok\n", "ok"),
            ("sometimes 1.36\n### a\nGET x => 200\n", "sometimes"),
            ("### a\nGET x => 200\n### a\nGET x => 200\n", "two requests"),
        ] {
            let error =
                Script::parse(String::new(), text).map_or_else(|e| format!("{e:#}"), |s| format!("{s:?}"));
            assert!(error.contains(said), "{text:?}: {error}");
        }
    }

    #[test]
    fn variables_stand_in_angle_brackets() {
        let variables = Variables::from([("ns".to_owned(), "api-1".to_owned())]);
        assert_eq!(fill("/<ns>/<none>", &variables), "/api-1/<none>");
    }

    #[test]
    fn all_scripts_are_well_formed() -> anyhow::Result<()> {
        let scripts = read_all(&super::super::folder())?;
        assert!(!scripts.is_empty());
        Ok(())
    }
}
