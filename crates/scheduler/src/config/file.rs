//! The configuration file: YAML with a header, every field optional, unknown fields refused.

use super::scoring::ScoringFile;
use super::{Config, ConfigError, HttpSettings, LeaseSettings, Settings, duration};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tutti_engine::NamedProfile;
use tutti_k8s::WhenBroken;
use tutti_k8s::gangs::Integration;
use tutti_lease::Timing;
use tutti_model::Text;

/// `apiVersion` of the file.
pub const API_VERSION: &str = "tutti.dev/v1alpha1";
/// `kind` of the file.
pub const KIND: &str = "SchedulerConfiguration";
/// Instead of an address: nothing is served.
const OFF: &str = "off";
/// Largest file that is read. A configuration is a few kilobytes; a wrong path may be anything.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// What it says cannot be used.
    #[error("{}: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The field and what is wrong with it.
        #[source]
        source: ConfigError,
    },
}

/// Reads and checks a file.
pub fn read(path: &Path) -> Result<Settings, FileError> {
    let io = |source| FileError::Io { path: path.to_owned(), source };
    let length = std::fs::metadata(path).map_err(io)?.len();
    if length > FILE_BYTES_MAX {
        let source =
            ConfigError::new("(the file)", format!("has {length} bytes; want at most {FILE_BYTES_MAX}"));
        return Err(FileError::Content { path: path.to_owned(), source });
    }
    let text = std::fs::read_to_string(path).map_err(io)?;
    parse(&text).map_err(|source| FileError::Content { path: path.to_owned(), source })
}

/// Reads and checks the text of a file.
pub fn parse(text: &str) -> Result<Settings, ConfigError> {
    // In two steps, because the second one can say which field it could not read.
    let value: serde_json::Value = serde_saphyr::from_str(text)
        .map_err(|error| ConfigError::new("(the file)", format!("is not YAML: {error}")))?;
    let file: File = serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "(the file)".to_owned() } else { path };
        ConfigError::new(field, error.into_inner().to_string())
    })?;
    let settings = file.into_settings()?;
    settings.validate()?;
    Ok(settings)
}

/// Writes settings as a file that [`parse`] reads back, with every field.
pub fn render(settings: &Settings) -> Result<String, ConfigError> {
    serde_saphyr::to_string(&File::from(settings))
        .map_err(|error| ConfigError::new("(the file)", format!("cannot be written: {error}")))
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct File {
    api_version: String,
    kind: String,
    profiles: Vec<ProfileFile>,
    limits: LimitsFile,
    timeouts: TimeoutsFile,
    gangs: GangsFile,
    job_integration: IntegrationFile,
    leader_election: LeaderElectionFile,
    http: HttpFile,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct ProfileFile {
    scheduler_names: Vec<String>,
    scoring: ScoringFile,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct LimitsFile {
    bind_concurrency: usize,
    events_per_second: u32,
    pod_conditions_per_second: u32,
    search_branches: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct TimeoutsFile {
    request: Span,
    outcome_settles: Span,
    shutdown_grace: Span,
    volume_bind: Span,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct GangsFile {
    grace: Span,
    patience: Span,
    when_broken: WhenBrokenFile,
}

/// As groups say it in their annotation.
#[derive(Debug, Serialize, Deserialize)]
enum WhenBrokenFile {
    Keep,
    Unwind,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
enum IntegrationFile {
    #[default]
    Auto,
    On,
    Off,
}

impl<'de> Deserialize<'de> for IntegrationFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(word) if word.eq_ignore_ascii_case("auto") => Ok(Self::Auto),
            serde_json::Value::String(word) if word.eq_ignore_ascii_case("on") => Ok(Self::On),
            serde_json::Value::String(word) if word.eq_ignore_ascii_case("off") => Ok(Self::Off),
            // In YAML as many programs read and write it, on and off are true and false.
            serde_json::Value::Bool(true) => Ok(Self::On),
            serde_json::Value::Bool(false) => Ok(Self::Off),
            other => Err(serde::de::Error::custom(format!("{other} is none of Auto, On, Off"))),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct LeaderElectionFile {
    enabled: bool,
    lease_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_namespace: Option<String>,
    lease_duration: Span,
    renew_deadline: Span,
    retry_period: Span,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct HttpFile {
    /// Address and port, or `off` to serve nothing.
    #[serde(deserialize_with = "address_or_off")]
    address: String,
    debug_from_anywhere: bool,
}

fn address_or_off<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::String(text) => Ok(text),
        // As above.
        serde_json::Value::Bool(false) => Ok(OFF.to_owned()),
        other => Err(serde::de::Error::custom(format!("{other} is neither IP:PORT nor {OFF}"))),
    }
}

/// A time in the file.
#[derive(Debug, Clone, Copy)]
struct Span(Duration);

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&duration::render(self.0))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        duration::parse(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// What a file says that says nothing. The header is never implied.
impl Default for File {
    fn default() -> Self {
        let file = Self::from(&Settings::of_a_cluster());
        Self { api_version: String::new(), kind: String::new(), ..file }
    }
}

macro_rules! default_from_file {
    ($($name:ty: $field:ident),*) => { $(impl Default for $name {
        fn default() -> Self {
            File::default().$field
        }
    })* };
}
default_from_file!(
    LimitsFile: limits,
    TimeoutsFile: timeouts,
    GangsFile: gangs,
    LeaderElectionFile: leader_election,
    HttpFile: http
);

impl Default for ProfileFile {
    fn default() -> Self {
        Self {
            scheduler_names: Config::default().scheduler_names().map(ToString::to_string).collect(),
            scoring: ScoringFile::default(),
        }
    }
}

impl From<&NamedProfile> for ProfileFile {
    fn from(named: &NamedProfile) -> Self {
        Self {
            scheduler_names: named.scheduler_names.iter().map(ToString::to_string).collect(),
            scoring: (&named.profile).into(),
        }
    }
}

impl ProfileFile {
    fn into_profile(self, index: usize) -> Result<NamedProfile, ConfigError> {
        Ok(NamedProfile {
            scheduler_names: self.scheduler_names.into_iter().map(Text::from).collect(),
            profile: self.scoring.into_profile(index)?,
        })
    }
}

impl From<&Settings> for File {
    fn from(settings: &Settings) -> Self {
        let Settings { config, elects, lease, http } = settings;
        let LeaseSettings { name, namespace, timing } = lease.clone();
        Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            profiles: config.profiles.iter().map(ProfileFile::from).collect(),
            limits: LimitsFile {
                bind_concurrency: config.bind_concurrency,
                events_per_second: config.events_per_second,
                pod_conditions_per_second: config.pod_conditions_per_second,
                search_branches: config.search_branches_max,
            },
            timeouts: TimeoutsFile {
                request: Span(config.request_timeout),
                outcome_settles: Span(config.outcome_settles_after),
                shutdown_grace: Span(config.shutdown_grace),
                volume_bind: Span(config.volume_bind_timeout),
            },
            gangs: GangsFile {
                grace: Span(config.gang_grace),
                patience: Span(config.gang_patience),
                when_broken: match config.when_broken {
                    WhenBroken::Keep => WhenBrokenFile::Keep,
                    WhenBroken::Unwind => WhenBrokenFile::Unwind,
                },
            },
            job_integration: match config.job_integration {
                Integration::Auto => IntegrationFile::Auto,
                Integration::On => IntegrationFile::On,
                Integration::Off => IntegrationFile::Off,
            },
            leader_election: LeaderElectionFile {
                enabled: *elects,
                lease_name: name,
                lease_namespace: namespace,
                lease_duration: Span(timing.lease_duration),
                renew_deadline: Span(timing.renew_deadline),
                retry_period: Span(timing.retry_period),
            },
            http: HttpFile {
                address: http.address.map_or_else(|| OFF.to_owned(), |address| address.to_string()),
                debug_from_anywhere: http.debug_from_anywhere,
            },
        }
    }
}

impl File {
    fn into_settings(self) -> Result<Settings, ConfigError> {
        for (field, found, wanted) in
            [("apiVersion", &self.api_version, API_VERSION), ("kind", &self.kind, KIND)]
        {
            if found != wanted {
                return Err(ConfigError::new(field, format!("want {wanted}, found {found:?}")));
            }
        }
        let profiles = self.profiles.into_iter().enumerate();
        let profiles = profiles.map(|(index, profile)| profile.into_profile(index));
        let LeaderElectionFile { enabled, lease_name, lease_namespace, .. } = self.leader_election;
        let timing = Timing {
            lease_duration: self.leader_election.lease_duration.0,
            renew_deadline: self.leader_election.renew_deadline.0,
            retry_period: self.leader_election.retry_period.0,
        };
        let lease = LeaseSettings { name: lease_name, namespace: lease_namespace, timing };
        Ok(Settings {
            config: Config {
                profiles: profiles.collect::<Result<_, _>>()?,
                search_branches_max: self.limits.search_branches,
                bind_concurrency: self.limits.bind_concurrency,
                request_timeout: self.timeouts.request.0,
                outcome_settles_after: self.timeouts.outcome_settles.0,
                events_per_second: self.limits.events_per_second,
                pod_conditions_per_second: self.limits.pod_conditions_per_second,
                shutdown_grace: self.timeouts.shutdown_grace.0,
                volume_bind_timeout: self.timeouts.volume_bind.0,
                gang_grace: self.gangs.grace.0,
                gang_patience: self.gangs.patience.0,
                when_broken: match self.gangs.when_broken {
                    WhenBrokenFile::Keep => WhenBroken::Keep,
                    WhenBrokenFile::Unwind => WhenBroken::Unwind,
                },
                job_integration: match self.job_integration {
                    IntegrationFile::Auto => Integration::Auto,
                    IntegrationFile::On => Integration::On,
                    IntegrationFile::Off => Integration::Off,
                },
            },
            elects: enabled,
            lease,
            http: HttpSettings {
                address: read_address(&self.http.address)?,
                debug_from_anywhere: self.http.debug_from_anywhere,
            },
        })
    }
}

fn read_address(text: &str) -> Result<Option<SocketAddr>, ConfigError> {
    if text.is_empty() || text == OFF {
        return Ok(None);
    }
    let wrong = || {
        let message = format!("{text:?} is no address: want IP:PORT, as in 127.0.0.1:10270, or {OFF}");
        ConfigError::new("http.address", message)
    };
    text.parse().map(Some).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tutti_engine::Profile;
    use tutti_engine::score::Strategy;

    const HEADER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: SchedulerConfiguration\n";

    #[test]
    fn a_file_with_nothing_but_its_header_means_the_defaults() {
        assert_eq!(parse(HEADER), Ok(Settings::of_a_cluster()));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = format!(
            "{HEADER}
profiles:
- schedulerNames: [tutti, default-scheduler]
  scoring:
    strategy:
      type: RequestedToCapacityRatio
      resources: [{{name: nvidia.com/gpu, weight: 5}}, {{name: cpu}}]
      shape: [{{utilization: 0, score: 0}}, {{utilization: 100, score: 10}}]
    weights: {{imageLocality: 0}}
    spreadByDefault: false
- schedulerNames: [packer]
  scoring: {{strategy: {{type: MostAllocated}}}}
limits: {{bindConcurrency: 7, searchBranches: 9}}
timeouts: {{request: 1m30s}}
gangs: {{grace: 2m, patience: 10m, whenBroken: Unwind}}
leaderElection: {{enabled: true, leaseNamespace: here, leaseDuration: 2s, renewDeadline: 1s, retryPeriod: 300ms}}
http: {{address: '0.0.0.0:9', debugFromAnywhere: true}}
jobIntegration: on
"
        );
        let settings = parse(&text).unwrap();
        let names: Vec<&str> = settings.config.scheduler_names().map(|name| &**name).collect();
        assert_eq!(names, ["tutti", "default-scheduler", "packer"]);
        let [first, packer] = &settings.config.profiles[..] else { panic!("two profiles") };
        assert_eq!(packer.profile, Profile { strategy: Strategy::MostAllocated, ..Profile::default() });
        assert_eq!(settings.config.bind_concurrency, 7);
        assert_eq!(settings.config.request_timeout, Duration::from_secs(90));
        assert_eq!(settings.config.gang_grace, Duration::from_secs(120));
        assert_eq!(settings.config.gang_patience, Duration::from_secs(600));
        assert_eq!(settings.config.when_broken, WhenBroken::Unwind);
        assert_eq!(settings.config.job_integration, Integration::On);
        assert_eq!((first.profile.weights.image_locality, first.profile.spreads_by_default), (0, false));
        assert_eq!(first.profile.weights.taint_toleration, 3, "what is not said stays as it is");
        let lease = settings.election().unwrap();
        assert_eq!(lease.namespace.as_deref(), Some("here"));
        assert_eq!(lease.timing.retry_period, Duration::from_millis(300));
        assert_eq!(parse(&render(&settings).unwrap()), Ok(settings));

        let alone =
            parse(&format!("{HEADER}leaderElection: {{enabled: false}}\nhttp: {{address: ''}}\n")).unwrap();
        assert_eq!((alone.election(), alone.http.address), (None, None));
        assert_eq!(parse(&render(&alone).unwrap()), Ok(alone.clone()));
        let off = parse(&format!("{HEADER}leaderElection: {{enabled: false}}\nhttp: {{address: off}}\n"));
        assert_eq!(off, Ok(alone), "as the option says it");
    }

    #[test]
    fn a_wrong_file_is_refused_by_field() {
        let scoring = |text: &str| format!("profiles: [{{scoring: {{{text}}}}}]");
        for (body, error) in [
            ("limits: {bindConcurency: 3}".to_owned(), "limits.bindConcurency: unknown field"),
            ("limits: {bindConcurrency: -3}".to_owned(), "limits.bindConcurrency: invalid value"),
            ("limits: {bindConcurrency: 0}".to_owned(), "limits.bindConcurrency: want 1 to 10000"),
            ("timeouts: {request: 10}".to_owned(), "timeouts.request: invalid type"),
            ("timeouts: {request: 10 s}".to_owned(), "timeouts.request: \"10 s\" is not a time"),
            (
                "timeouts: {request: 1m, outcomeSettles: 30s}".to_owned(),
                "timeouts.outcomeSettles: want at least timeouts.request (1m)",
            ),
            ("http: {address: here}".to_owned(), "http.address: \"here\" is no address"),
            ("gangs: {grace: 0s}".to_owned(), "gangs.grace: want more than 0s"),
            ("gangs: {patience: 999h}".to_owned(), "gangs.patience: want at most 168h"),
            ("gangs: {whenBroken: Burn}".to_owned(), "gangs.whenBroken: unknown variant"),
            ("jobIntegration: maybe".to_owned(), "jobIntegration: \"maybe\" is none of Auto, On, Off"),
            ("profiles: []".to_owned(), "profiles: want 1 to 64"),
            ("profiles: [{}, {}]".to_owned(), "profiles[1].schedulerNames[0]: \"tutti\" is there twice"),
            (
                "profiles: [{}, {schedulerNames: [b], scoring: {weights: {nodeAffinity: 101}}}]".to_owned(),
                "profiles[1].scoring.weights.nodeAffinity: want 0 to 100",
            ),
            (
                "profiles: [{}, {schedulerNames: [b], scoring: {strategy: {type: RequestedToCapacityRatio}}}]"
                    .to_owned(),
                "profiles[1].scoring.strategy.shape: a curve needs at least one point",
            ),
            (
                "profiles: [{schedulerNames: [A]}]".to_owned(),
                "profiles[0].schedulerNames[0]: \"A\" is no name",
            ),
            (scoring("strategy: {type: Most}"), "profiles[0].scoring.strategy.type: unknown variant `Most`"),
            (
                scoring("strategy: {shape: [{utilization: 1, score: 1}]}"),
                "profiles[0].scoring.strategy.shape: only strategy RequestedToCapacityRatio",
            ),
            (
                scoring("strategy: {type: RequestedToCapacityRatio}"),
                "profiles[0].scoring.strategy.shape: a curve needs at least one point",
            ),
            (
                scoring("strategy: {resources: [{name: cpu, weight: 0}]}"),
                "profiles[0].scoring.strategy.resources[0].weight: want 1 to 100",
            ),
            (
                scoring("balancedResources: [cpu, cpu]"),
                "profiles[0].scoring.balancedResources[1]: is there twice",
            ),
            (
                scoring("weights: {nodeAffinity: 101}"),
                "profiles[0].scoring.weights.nodeAffinity: want 0 to 100",
            ),
            (
                "leaderElection: {leaseDuration: 5s}".to_owned(),
                "leaderElection.renewDeadline: want less than leaseDuration",
            ),
            ("leaderElection: {leaseName: ''}".to_owned(), "leaderElection.leaseName: \"\" is no name of an object"),
            ("[".to_owned(), "(the file): is not YAML"),
            ("limits: {}\nlimits: {}".to_owned(), "(the file): is not YAML"),
        ] {
            let found = parse(&format!("{HEADER}{body}\n")).expect_err(&body).to_string();
            assert!(found.starts_with(error), "{body}: {found}");
        }
        assert!(
            parse("kind: SchedulerConfiguration").unwrap_err().to_string().starts_with("apiVersion: want")
        );
        let other = HEADER.replace("Scheduler", "Kube");
        assert!(
            parse(&other).unwrap_err().to_string().starts_with("kind: want SchedulerConfiguration, found")
        );
    }

    #[test]
    fn an_error_names_the_file() {
        let missing = read(Path::new("/nowhere/scheduler.yaml")).unwrap_err().to_string();
        assert!(missing.starts_with("/nowhere/scheduler.yaml: "), "{missing}");
    }
}
