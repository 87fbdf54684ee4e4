//! Tells stories one after the other and says how they ended.

use crate::control_plane::{ControlPlane, Purpose};
use crate::kube_scheduler::{self, KubeScheduler};
use crate::rights;
use crate::stories::{self, Needs, Story};
use crate::world::{Setting, World};
use crate::{Binary, ServeArgs, StoriesArgs};
use anyhow::{Context as _, anyhow};
use futures::FutureExt as _;
use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A story that takes longer has failed. Its own waits end earlier and say what they waited for.
const STORY_MAX: Duration = Duration::from_secs(900);

/// How many stories ended in which way.
#[derive(Debug, Default)]
struct Count {
    passed: usize,
    failed: usize,
    /// Left out because something is not there that they need.
    skipped: usize,
}

/// Tells the stories on every release; true if all ended well.
pub(crate) async fn stories(binaries: &[Binary], args: &StoriesArgs) -> anyhow::Result<bool> {
    let wanted =
        |story: &Story| args.filters.is_empty() || args.filters.iter().any(|text| story.name.contains(text));
    let told: Vec<Story> = stories::all().into_iter().filter(wanted).collect();
    if told.is_empty() {
        return Err(anyhow!("no story has one of {:?} in its name", args.filters));
    }
    let start = Instant::now();
    let mut count = Count::default();
    if let Some(file) = &given_kubeconfig(args.kubeconfig.as_deref()) {
        let newest = binaries.last().context("no control plane binary is given")?;
        let setting = Setting {
            helm: args.helm.as_deref(),
            // It must be of the cluster's release, which is not known here.
            kube_scheduler: KubeScheduler::given(),
            ..Setting::of(file, &newest.file, &args.tutti).await?
        };
        tell_all("given cluster", &setting, &told, &mut count).await;
        rights::revoke_scheduler(&setting.kubectl).await?;
    } else {
        for binary in binaries {
            let started = Instant::now();
            let control_plane = ControlPlane::start(binary.release, &binary.file, Purpose::Stories).await?;
            let setting = Setting {
                control_plane: Some(&control_plane),
                helm: args.helm.as_deref(),
                kube_scheduler: KubeScheduler::given()
                    .or_else(|| Some(KubeScheduler::ControlPlane(binary.file.clone()))),
                ..Setting::of(control_plane.kubeconfig(), &binary.file, &args.tutti).await?
            };
            let version = setting.client.apiserver_version().await?.git_version;
            say(&format!("control plane {version} is up after {}", seconds(started)));
            let failed_before = count.failed;
            tell_all(&version, &setting, &told, &mut count).await;
            if count.failed > failed_before {
                say(&format!("logs are kept in {}", control_plane.keep_folder().display()));
            }
        }
    }
    say(&format!(
        "stories: {} passed, {} failed, {} skipped in {}",
        count.passed,
        count.failed,
        count.skipped,
        seconds(start)
    ));
    Ok(count.failed == 0)
}

/// Starts control planes for people to look at.
pub(crate) async fn serve(binaries: &[Binary], args: &ServeArgs) -> anyhow::Result<bool> {
    let mut serving = Vec::new();
    for binary in binaries {
        let control_plane = ControlPlane::start(binary.release, &binary.file, args.purpose).await?;
        say(&format!("{}: KUBECONFIG={}", binary.release, control_plane.kubeconfig().display()));
        serving.push(control_plane);
    }
    tokio::signal::ctrl_c().await?;
    Ok(true)
}

async fn tell_all(place: &str, setting: &Setting<'_>, told: &[Story], count: &mut Count) {
    for story in told {
        let name = format!("{place} {}", story.name);
        if let Some(why) = missing(story.needs, setting) {
            say(&format!("skipped {name}: {why}"));
            count.skipped += 1;
            continue;
        }
        let start = Instant::now();
        match tell(story, setting).await {
            Ok(()) => {
                say(&format!("ok      {name} ({})", seconds(start)));
                count.passed += 1;
            }
            Err(error) => {
                say(&format!("FAILED  {name} ({}): {error:#}", seconds(start)));
                count.failed += 1;
            }
        }
    }
}

/// What a story needs and this setting does not have.
fn missing(needs: Needs, setting: &Setting<'_>) -> Option<String> {
    match needs {
        Needs::OwnControlPlane if setting.control_plane.is_none() => {
            Some("this control plane is not ours to kill".to_owned())
        }
        Needs::KubeScheduler if setting.kube_scheduler.is_none() => {
            Some(format!("{} names no kube-scheduler of this cluster's release", kube_scheduler::VARIABLE))
        }
        Needs::Composites if setting.may_lack_composites() => {
            Some("this release has no composites".to_owned())
        }
        Needs::ChangingMinimum if setting.minimum_is_fixed() => {
            Some("this release lets nobody change the policy of a group".to_owned())
        }
        Needs::Helm if setting.helm.is_none() => Some("there is no helm; ./e2e/helm builds it".to_owned()),
        _ => None,
    }
}

/// Tells one story and cleans up after it, however it ended.
async fn tell(story: &Story, setting: &Setting<'_>) -> anyhow::Result<()> {
    let world = World::start(setting.clone()).await?;
    let telling = AssertUnwindSafe((story.tell)(&world)).catch_unwind();
    let result = match tokio::time::timeout(STORY_MAX, telling).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => Err(anyhow!("panicked: {}", panic_text(panic.as_ref()))),
        Err(_) => Err(anyhow!("took longer than {} s", STORY_MAX.as_secs())),
    };
    let cleaned = world.end().await.context("cleaning up");
    result.and(cleaned)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

/// The cluster to use in place of our own, by argument or by environment.
pub(crate) fn given_kubeconfig(argument: Option<&Path>) -> Option<PathBuf> {
    argument.map(Path::to_owned).or_else(|| std::env::var_os("TUTTI_E2E_KUBECONFIG").map(PathBuf::from))
}

pub(crate) fn seconds(since: Instant) -> String {
    format!("{:.1} s", since.elapsed().as_secs_f64())
}

/// Prints a line. If nobody reads it any more, nobody misses it.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
