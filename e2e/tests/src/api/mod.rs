//! The same requests to the real API server and to the embedded one: answers must be alike, or listed with a reason.

mod answer;
mod difference;
mod known;
mod script;
mod side;

use crate::control_plane::{ControlPlane, Purpose};
use crate::release::Release;
use crate::runner::{given_kubeconfig, say, seconds};
use crate::{ApiArgs, Binary};
use answer::{Answer, cut_to_common};
use anyhow::{Context as _, anyhow, bail};
use difference::differences;
use known::KnownList;
use kube::Client;
use script::{Request, Script, Variables};
use side::Side;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tutti_cluster::cluster::{Cluster, ClusterOptions};
use tutti_cluster::kubeconfig;
use tutti_cluster::listener::Port;

/// What is sent before and after each script.
const FRAME: &str = "
### its namespace is made
POST /api/v1/namespaces => 201
{metadata: {name: <ns>}}
### its namespace goes
DELETE /api/v1/namespaces/<ns> => 200
";

/// Where the scripts are.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("api")
}

fn known_file() -> PathBuf {
    folder().join("known.yaml")
}

/// Sends all requests on every release; true if every difference is listed and every listed one is met.
pub(crate) async fn run(binaries: &[Binary], args: &ApiArgs) -> anyhow::Result<bool> {
    let wanted = |script: &Script| {
        args.filters.is_empty() || args.filters.iter().any(|text| script.name.contains(text))
    };
    let scripts: Vec<Script> = script::read_all(&folder())?.into_iter().filter(wanted).collect();
    if scripts.is_empty() {
        return Err(anyhow!("no script has one of {:?} in its name", args.filters));
    }
    let mut comparison = Comparison { known: KnownList::read(&known_file())?, failures: 0 };
    let mut releases = Vec::new();
    if let Some(file) = given_kubeconfig(args.kubeconfig.as_deref()) {
        let client = kubeconfig::client_of_file(&file).await?;
        let release = release_of(&client).await?;
        releases.push(release);
        comparison.compare(release, client, &scripts).await?;
    } else {
        for binary in binaries {
            let control_plane = ControlPlane::start(binary.release, &binary.file, Purpose::Api).await?;
            releases.push(binary.release);
            comparison.compare(binary.release, control_plane.client().await?, &scripts).await?;
        }
    }
    for line in comparison.known.met() {
        say(&format!("listed  {line}"));
    }
    // A part of the scripts cannot meet all that is listed.
    if args.filters.is_empty() {
        for what in comparison.known.stale(&releases) {
            say(&format!("STALE   this difference is listed and is not there any more: {what}"));
            comparison.failures += 1;
        }
    }
    Ok(comparison.failures == 0)
}

async fn release_of(client: &Client) -> anyhow::Result<Release> {
    let version = client.apiserver_version().await?;
    format!("{}.{}", version.major, version.minor).parse().context("the given cluster")
}

/// What is known beforehand, and what has gone wrong so far.
struct Comparison {
    known: KnownList,
    failures: usize,
}

/// What happened on one release.
#[derive(Default)]
struct Count {
    requests: usize,
    alike: usize,
    explained: usize,
    failed: usize,
}

impl Comparison {
    /// Sends the scripts that are about a release to its server and to an embedded one.
    async fn compare(&mut self, release: Release, real: Client, scripts: &[Script]) -> anyhow::Result<()> {
        let start = Instant::now();
        let options = ClusterOptions {
            port: Port::Exactly(0),
            release: release.embedded(),
            simulate_nodes: false,
            // The control plane that it is compared with runs without them too.
            service_accounts: false,
            controllers: None,
            ..ClusterOptions::default()
        };
        let cluster = Cluster::start(options).await?;
        let mut count = Count::default();
        for script in scripts.iter().filter(|script| script.only.is_none_or(|only| only == release)) {
            let once = [String::new()];
            let (variable, values) = match &script.each {
                Some((variable, values)) => (variable.as_str(), values.as_slice()),
                None => ("", once.as_slice()),
            };
            for value in values {
                let id = uuid::Uuid::new_v4().simple().to_string();
                let mut variables = Variables::from([("ns".to_owned(), format!("api-{}", &id[..8]))]);
                if !variable.is_empty() {
                    variables.insert(variable.to_owned(), value.clone());
                }
                let name =
                    if value.is_empty() { script.name.clone() } else { format!("{}-{value}", script.name) };
                let mut sides = [&real, &cluster.client()]
                    .map(|client| Side { client: client.clone(), variables: variables.clone() });
                self.play(release, &name, script, &mut sides, &mut count).await?;
            }
        }
        cluster.shutdown().await;
        say(&format!(
            "api {release}: {} requests in {}: {} answered alike, {} with a listed difference, {} with another",
            count.requests,
            seconds(start),
            count.alike,
            count.explained,
            count.failed,
        ));
        self.failures += count.failed;
        Ok(())
    }

    async fn play(
        &mut self,
        release: Release,
        name: &str,
        script: &Script,
        [real, embedded]: &mut [Side; 2],
        count: &mut Count,
    ) -> anyhow::Result<()> {
        let frame = Script::parse(name.to_owned(), FRAME)?;
        let [first, last] = frame.requests.as_slice() else { bail!("the frame of scripts has two requests") };
        let mut open = Vec::new();
        let requests = [first].into_iter().chain(&script.requests);
        for request in requests.filter(|request| request.only.is_none_or(|only| only == release)) {
            let id = format!("{name}/{}", request.title);
            if let Some(until) = &request.until {
                let opened = tokio::try_join!(real.open(request, until), embedded.open(request, until));
                open.push((request, opened.context(id)?));
                continue;
            }
            let answers = tokio::try_join!(real.ask(request), embedded.ask(request)).context(id.clone())?;
            self.count(release, &id, request, &answers, [real, embedded], count);
        }
        for (request, (by_real, by_embedded)) in open {
            let id = format!("{name}/{}", request.title);
            let answers = tokio::try_join!(by_real.told(), by_embedded.told()).context(id.clone())?;
            self.count(release, &id, request, &answers, [real, embedded], count);
        }
        let id = format!("{name}/{}", last.title);
        let answers = tokio::try_join!(real.ask(last), embedded.ask(last)).context(id.clone())?;
        self.count(release, &id, last, &answers, [real, embedded], count);
        Ok(())
    }

    fn count(
        &mut self,
        release: Release,
        id: &str,
        request: &Request,
        (by_real, by_embedded): &(Answer, Answer),
        [real, embedded]: [&Side; 2],
        count: &mut Count,
    ) {
        count.requests += 1;
        let answers = [(by_real, &real.variables), (by_embedded, &embedded.variables)];
        match self.judge(release, id, request, answers) {
            Verdict::Alike => count.alike += 1,
            Verdict::Explained => count.explained += 1,
            Verdict::Different => count.failed += 1,
        }
    }

    fn judge(
        &mut self,
        release: Release,
        id: &str,
        request: &Request,
        answers: [(&Answer, &Variables); 2],
    ) -> Verdict {
        let (real, _) = answers[0];
        if real.code != request.code {
            let (code, body) = (real.code, &real.body);
            say(&format!(
                "WRONG   {release} {id}: the script expects {}, but the answer is {code}: {body}",
                request.code
            ));
            return Verdict::Different;
        }
        let [mut real, mut embedded] =
            answers.map(|(answer, variables)| answer.normalised(variables, &request.keep));
        if request.common {
            cut_to_common(&mut real, &mut embedded);
        }
        let mut found = differences(&real, &embedded);
        if real["code"] != embedded["code"] {
            // All that follows from it would say the same again and again.
            found.retain(|difference| difference.path == "code" || difference.path == "body.message");
        }
        if found.is_empty() {
            return Verdict::Alike;
        }
        let mut verdict = Verdict::Explained;
        for difference in found {
            if !self.known.explains(release, id, &difference.path) {
                say(&format!("DIFFERS {release} {id}: {difference}"));
                verdict = Verdict::Different;
            }
        }
        verdict
    }
}

enum Verdict {
    Alike,
    /// All differences are listed.
    Explained,
    Different,
}
