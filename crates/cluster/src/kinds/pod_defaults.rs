//! Defaults of a Pod, including those that Kubernetes' admission plugins add on create.

use super::defaults::{child, each, existing, set};
use super::quantity;
use serde_json::{Map, Value, json};
use tutti_model::Quantity;

/// File mode of files in volumes that the API server fills: 0644.
const VOLUME_FILE_MODE: i32 = 0o644;
/// How long a pod stays on a node that is gone, unless it says otherwise.
const NODE_LOST_TOLERATION_SECONDS: i64 = 300;
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
const HOOKS: [&str; 2] = ["postStart", "preStop"];

/// Fills in the defaults of a pod. A pod without any status is new and gets its first one.
pub(super) fn pod(object: &mut Map<String, Value>) {
    let Some(spec) = child(object, "spec") else { return };
    pod_spec(spec);
    set(spec, "enableServiceLinks", json!(true));
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or(false);
    for list in ["containers", "initContainers"] {
        for one in each(spec, list) {
            requests_from_limits(one);
            if host_network {
                host_ports(one);
            }
        }
    }
    default_tolerations(spec);
    let status = if object.contains_key("status") { None } else { Some(first_status(object)) };
    if let Some(status) = status {
        object.insert("status".to_owned(), status);
    }
}

/// Fills in the defaults of the template in an object. Those that depend on where and when a pod runs wait for
/// the pod.
pub(super) fn template(holder: &mut Map<String, Value>) {
    let spec = existing(holder, "template").and_then(|template| existing(template, "spec"));
    if let Some(spec) = spec {
        pod_spec(spec);
    }
}

fn pod_spec(spec: &mut Map<String, Value>) {
    set(spec, "restartPolicy", json!("Always"));
    set(spec, "dnsPolicy", json!("ClusterFirst"));
    set(spec, "terminationGracePeriodSeconds", json!(30));
    // A negative grace is how old clients ask for the shortest one.
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec.insert("terminationGracePeriodSeconds".to_owned(), json!(1));
    }
    if spec.get("schedulingGates").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        spec.remove("schedulingGates");
    }
    set(spec, "schedulerName", json!("default-scheduler"));
    set(spec, "securityContext", json!({}));
    mirror_service_account(spec);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list).for_each(container);
    }
    each(spec, "volumes").for_each(volume);
}

/// The old name of the field is still read by clients, so both always agree.
fn mirror_service_account(spec: &mut Map<String, Value>) {
    let name = ["serviceAccountName", "serviceAccount"]
        .iter()
        .find_map(|field| spec.get(*field).and_then(Value::as_str).filter(|name| !name.is_empty()))
        .map(str::to_owned);
    if let Some(name) = name {
        spec.insert("serviceAccountName".to_owned(), json!(name));
        spec.insert("serviceAccount".to_owned(), json!(name));
    }
}

fn container(one: &mut Map<String, Value>) {
    let image = one.get("image").and_then(Value::as_str).unwrap_or_default();
    let pull = if is_latest(image) { "Always" } else { "IfNotPresent" };
    set(one, "imagePullPolicy", json!(pull));
    set(one, "terminationMessagePath", json!("/dev/termination-log"));
    set(one, "terminationMessagePolicy", json!("File"));
    set(one, "resources", json!({}));
    for port in each(one, "ports") {
        set(port, "protocol", json!("TCP"));
    }
    for variable in each(one, "env") {
        let source = existing(variable, "valueFrom").and_then(|source| existing(source, "fieldRef"));
        if let Some(reference) = source {
            set(reference, "apiVersion", json!("v1"));
        }
    }
    for field in PROBES {
        if let Some(probe) = existing(one, field) {
            set(probe, "timeoutSeconds", json!(1));
            set(probe, "periodSeconds", json!(10));
            set(probe, "successThreshold", json!(1));
            set(probe, "failureThreshold", json!(3));
            handler(probe);
        }
    }
    if let Some(lifecycle) = existing(one, "lifecycle") {
        for field in HOOKS {
            if let Some(hook) = existing(lifecycle, field) {
                handler(hook);
            }
        }
    }
}

/// On the host's network a container port *is* a host port.
fn host_ports(one: &mut Map<String, Value>) {
    for port in each(one, "ports") {
        if let Some(number) = port.get("containerPort").cloned() {
            set(port, "hostPort", number);
        }
    }
}

fn handler(holder: &mut Map<String, Value>) {
    if let Some(http) = existing(holder, "httpGet") {
        set(http, "scheme", json!("HTTP"));
        set(http, "path", json!("/"));
    }
    if let Some(grpc) = existing(holder, "grpc") {
        set(grpc, "service", json!(""));
    }
}

/// True if an image reference means "whatever is newest": tag `latest`, or neither tag nor digest.
fn is_latest(image: &str) -> bool {
    let (name, digest) = image.split_once('@').map_or((image, ""), |(name, digest)| (name, digest));
    // A colon before the last slash belongs to a port of the registry.
    let last = name.rsplit('/').next().unwrap_or_default();
    match last.split_once(':') {
        Some((_, tag)) => tag == "latest",
        None => digest.is_empty(),
    }
}

/// A container that limits a resource but does not request it, requests all of its limit.
fn requests_from_limits(one: &mut Map<String, Value>) {
    let Some(resources) = existing(one, "resources") else {
        return;
    };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else {
        return;
    };
    if limits.is_empty() {
        return;
    }
    let Some(requests) = child(resources, "requests") else {
        return;
    };
    for (resource, limit) in limits {
        requests.entry(resource).or_insert(limit);
    }
}

fn volume(one: &mut Map<String, Value>) {
    if one.keys().all(|key| key == "name") {
        one.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = existing(one, source) {
            set(source, "defaultMode", json!(VOLUME_FILE_MODE));
        }
    }
    if let Some(path) = existing(one, "hostPath") {
        set(path, "type", json!(""));
    }
}

/// Pods stay for a while on nodes that stopped answering, unless they say otherwise.
fn default_tolerations(spec: &mut Map<String, Value>) {
    set(spec, "tolerations", json!([]));
    let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) else {
        return;
    };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let said = tolerations.iter().any(|toleration| {
            let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
            (text("key") == key || text("key").is_empty())
                && (text("effect") == "NoExecute" || text("effect").is_empty())
        });
        if !said {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": NODE_LOST_TOLERATION_SECONDS,
            }));
        }
    }
}

fn first_status(object: &Map<String, Value>) -> Value {
    let spec = object.get("spec");
    let gates = spec.and_then(|s| s.get("schedulingGates")).and_then(Value::as_array);
    let since = object.get("metadata").and_then(|metadata| metadata.get("creationTimestamp"));
    let mut status = json!({"phase": "Pending", "qosClass": qos_class(spec)});
    if gates.is_some_and(|gates| !gates.is_empty()) {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null, "lastTransitionTime": since,
        }]);
    }
    status
}

/// Guaranteed if every container limits cpu and memory to what it requests, BestEffort if none asks for
/// anything, else Burstable.
pub(super) fn qos_class(spec: Option<&Value>) -> &'static str {
    let containers =
        ["containers", "initContainers"].iter().filter_map(|list| spec?.get(list)?.as_array()).flatten();
    let (mut guaranteed, mut asked) = (true, false);
    for container in containers {
        for resource in ["cpu", "memory"] {
            let amount = |kind: &str| {
                let value = container.get("resources")?.get(kind)?.get(resource)?;
                quantity::of(value).filter(|amount| *amount > Quantity::default())
            };
            let (request, limit) = (amount("requests"), amount("limits"));
            asked |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && request == limit;
        }
    }
    match (asked, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaulted(spec: Value) -> Value {
        let mut object = Map::new();
        object.insert("spec".to_owned(), spec);
        pod(&mut object);
        Value::Object(object)
    }

    #[test]
    fn a_bare_pod_gets_what_kubernetes_fills_in() {
        let pod =
            defaulted(json!({"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]}));
        let want = json!({
            "containers": [{
                "name": "c", "image": "i", "imagePullPolicy": "Always", "resources": {},
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30,
            "schedulerName": "default-scheduler", "securityContext": {}, "enableServiceLinks": true,
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
                 "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
                 "tolerationSeconds": 300},
            ],
        });
        assert_eq!(pod["spec"], want);
        assert_eq!(pod["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    }

    #[test]
    fn defaults_are_the_same_when_set_twice() {
        let once = defaulted(json!({
            "hostNetwork": true, "volumes": [{"name": "v"}, {"name": "s", "secret": {"secretName": "s"}}],
            "containers": [{
                "image": "i:1", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": 1}},
                "livenessProbe": {"httpGet": {"port": 80}},
            }],
        }));
        let mut twice = once.as_object().unwrap().clone();
        pod(&mut twice);
        assert_eq!(Value::Object(twice), once);
    }

    #[test]
    fn only_a_moving_image_is_always_pulled() {
        let cases = [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1.2", false),
            ("host:5000/nginx", true),
            ("host:5000/nginx:1", false),
            ("nginx@sha256:00", false),
            ("nginx:latest@sha256:00", true),
            ("", true),
        ];
        for (image, latest) in cases {
            assert_eq!(is_latest(image), latest, "{image:?}");
        }
    }

    #[test]
    fn missing_requests_come_from_limits_also_for_init_containers() {
        let container =
            json!({"resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}});
        let pod = defaulted(json!({"containers": [container], "initContainers": [container]}));
        for list in ["containers", "initContainers"] {
            let requests = &pod["spec"][list][0]["resources"]["requests"];
            assert_eq!(*requests, json!({"cpu": "1", "memory": "1Gi"}), "{list}");
        }
    }

    #[test]
    fn ports_on_the_host_network_are_host_ports() {
        let pod = defaulted(json!({"hostNetwork": true, "containers": [{"ports": [{"containerPort": 80}]}]}));
        assert_eq!(pod["spec"]["containers"][0]["ports"][0]["hostPort"], 80);
    }

    #[test]
    fn a_pod_that_tolerates_a_lost_node_already_is_left_alone() {
        let all = json!([{"operator": "Exists"}]);
        assert_eq!(defaulted(json!({"tolerations": all}))["spec"]["tolerations"], all);
        let own =
            json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]);
        let tolerations = defaulted(json!({"tolerations": own}))["spec"]["tolerations"].clone();
        assert_eq!(tolerations.as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn quality_of_service_follows_requests_and_limits() {
        let full = json!({"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}});
        let part = json!({"resources": {"requests": {"cpu": "1"}}});
        let zero = json!({"resources": {"requests": {"cpu": "0"}}});
        let same = json!({"resources": {"limits": {"cpu": "1", "memory": "1Gi"},
            "requests": {"cpu": "1000m", "memory": "1024Mi"}}});
        let cases = [
            (json!([full]), "Guaranteed"),
            (json!([same]), "Guaranteed"),
            (json!([full, part]), "Burstable"),
            (json!([part]), "Burstable"),
            (json!([zero]), "BestEffort"),
            (json!([{}]), "BestEffort"),
        ];
        for (containers, want) in cases {
            let pod = defaulted(json!({"containers": containers}));
            assert_eq!(pod["status"]["qosClass"], want, "{containers}");
        }
    }

    #[test]
    fn a_gated_pod_says_so_and_an_existing_status_is_kept() {
        let pod = defaulted(json!({"schedulingGates": [{"name": "g"}]}));
        assert_eq!(pod["status"]["conditions"][0]["reason"], "SchedulingGated");
        let mut object = json!({"spec": {}, "status": {"phase": "Running"}}).as_object().unwrap().clone();
        super::pod(&mut object);
        assert_eq!(object["status"], json!({"phase": "Running"}));
    }
}
