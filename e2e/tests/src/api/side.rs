//! One of the two servers: its client and what was learnt from its answers.

use super::answer::Answer;
use super::script::{Body, Request, Variables, fill};
use crate::wait::{PATIENCE, pause};
use anyhow::Context as _;
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::Value;
use std::time::{Duration, Instant};

/// An answer that takes longer has failed; watches of scripts end by themselves after a second or two.
const ANSWER_MAX: Duration = Duration::from_secs(40);

/// A server that requests are sent to.
pub(super) struct Side {
    pub(super) client: Client,
    pub(super) variables: Variables,
}

impl Side {
    /// Sends a request, more than once if its answer comes eventually, and saves what it is told to save.
    pub(super) async fn ask(&mut self, request: &Request) -> anyhow::Result<Answer> {
        let deadline = Instant::now() + PATIENCE;
        let answer = loop {
            let answer = self.send(request).await?;
            if !request.eventually || answer.code == request.code || Instant::now() >= deadline {
                break answer;
            }
            pause().await;
        };
        for (name, path) in &request.save {
            let mut found = Some(&answer.body);
            for step in path.split('.') {
                found = found.and_then(|value| match step.parse::<usize>() {
                    Ok(index) => value.get(index),
                    Err(_) => value.get(step),
                });
            }
            // What is not there is a difference that the comparison reports; requests that need it show more.
            let text = found.and_then(Value::as_str).unwrap_or("absent");
            self.variables.insert(name.clone(), text.to_owned());
        }
        Ok(answer)
    }

    /// Opens a watch. What it tells is read on beside other requests, until it has told of the object that ends it.
    pub(super) async fn open(&self, request: &Request, until: &str) -> anyhow::Result<Open> {
        let (path, sent) = self.http(request)?;
        let opening = tokio::time::timeout(ANSWER_MAX, self.client.send(sent)).await;
        let opened = opening.with_context(|| format!("{path} is not opened"))??;
        let until = fill(until, &self.variables);
        Ok(Open(tokio::spawn(async move {
            let (head, mut body) = opened.into_parts();
            let mut bytes = Vec::new();
            let reading = async {
                while !told_of(&bytes, &until) {
                    let Some(frame) = body.frame().await else { break };
                    bytes.extend_from_slice(frame?.data_ref().map(|data| &data[..]).unwrap_or_default());
                }
                anyhow::Ok(())
            };
            let read = tokio::time::timeout(ANSWER_MAX, reading).await;
            read.with_context(|| format!("{path} does not tell of {until}"))??;
            Answer::read(&head, &bytes, true)
        })))
    }

    async fn send(&self, request: &Request) -> anyhow::Result<Answer> {
        let (path, sent) = self.http(request)?;
        let exchange = async {
            let (head, body) = self.client.send(sent).await?.into_parts();
            let bytes = body.collect_bytes().await?;
            Answer::read(&head, &bytes, path.contains("watch=true"))
        };
        let answer = tokio::time::timeout(ANSWER_MAX, exchange).await;
        answer.with_context(|| format!("{} {path} is not answered", request.method))?
    }

    /// A request as this server gets it, and its path.
    fn http(&self, request: &Request) -> anyhow::Result<(String, http::Request<kube::client::Body>)> {
        let path = fill(&request.path, &self.variables).replace(' ', "%20");
        let mut builder = http::Request::builder().method(request.method.clone()).uri(&path);
        for (name, value) in &request.headers {
            builder = builder.header(name, fill(value, &self.variables));
        }
        let body = match &request.body {
            None => Vec::new(),
            Some(Body::Raw(text)) => fill(text, &self.variables).into_bytes(),
            Some(Body::Yaml(text)) => {
                let text = fill(text, &self.variables);
                let value: Value = serde_saphyr::from_str(&text).with_context(|| format!("body {text}"))?;
                serde_json::to_vec(&value)?
            }
        };
        let sent = builder.body(kube::client::Body::from(body))?;
        Ok((path, sent))
    }
}

/// A watch that is open.
pub(super) struct Open(tokio::task::JoinHandle<anyhow::Result<Answer>>);

impl Open {
    /// All that it has told, once it has come to its end.
    pub(super) async fn told(self) -> anyhow::Result<Answer> {
        self.0.await?
    }
}

/// True if the whole last event is about an object of this name.
fn told_of(events: &[u8], name: &str) -> bool {
    let last = events.strip_suffix(b"\n").and_then(|lines| lines.rsplit(|byte| *byte == b'\n').next());
    let event: Option<Value> = last.and_then(|line| serde_json::from_slice(line).ok());
    event.is_some_and(|event| {
        let object = &event["object"];
        // In a table the object is in its row.
        [object, &object["rows"][0]["object"]].iter().any(|object| object["metadata"]["name"] == name)
    })
}
