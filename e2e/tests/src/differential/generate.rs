//! Small random clusters in which every rule has something to say, written as a real API server would store them:
//! what it defaults is spelled out, what it refuses does not occur.

use crate::random::Random;
use serde::Serialize;
use serde_json::{Map, Value, json};

const NAMESPACES: [&str; 3] = ["red", "green", "blue"];
const ZONE: &str = "topology.kubernetes.io/zone";
const RACK: &str = "example.com/rack";
const HOST: &str = "kubernetes.io/hostname";
const KEYS: [&str; 3] = [ZONE, RACK, HOST];
pub(super) const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
pub(super) const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
/// What containers are made of: names short and long, and one that no node has.
const IMAGES: [&str; 6] = [
    "any",
    "small",
    "large:latest",
    "example.com/alias/large:v1",
    "registry.example.com:5000/huge@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "middle:v2",
];
const GPU: &str = "nvidia.com/gpu";
/// Requests that recur, so that nodes fill up exactly.
const CPUS: [&str; 6] = ["0", "100m", "250m", "500m", "1", "1500m"];
const MEMORIES: [&str; 5] = ["0", "64Mi", "100M", "512Mi", "1Gi"];

/// A cluster, and a pod that wants a node.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Question {
    pub(crate) nodes: Vec<Value>,
    pub(crate) namespaces: Vec<Value>,
    pub(crate) pods: Vec<Value>,
    pub(crate) pod: Value,
}

/// What a case is about. With everything at once, the first rule would reject most nodes and later ones would
/// never be asked.
#[derive(Debug, Clone, Copy)]
struct Flavor {
    taints: bool,
    node_affinity: bool,
    resources: bool,
    ports: bool,
    inter_pod: bool,
    spread: bool,
    /// Whether what is only wished for occurs, too.
    wishes: bool,
    images: bool,
    features: bool,
}

impl Flavor {
    fn of(random: &mut Random) -> Self {
        Self {
            taints: random.percent(30),
            node_affinity: random.percent(35),
            resources: random.percent(35),
            ports: random.percent(25),
            inter_pod: random.percent(45),
            spread: random.percent(45),
            wishes: random.percent(60),
            images: random.percent(30),
            features: random.percent(20),
        }
    }
}

/// The question of one case. The same numbers always give the same question.
pub(crate) fn question(random: &mut Random) -> Question {
    let flavor = Flavor::of(random);
    let count = random.between(1, 6);
    let nodes: Vec<Value> = (0..count).map(|index| node(random, flavor, index)).collect();
    let namespaces = NAMESPACES.map(|name| namespace(random, name)).to_vec();
    let pods = (0..random.between(0, 8))
        .map(|index| {
            let on = format!("node-{}", random.between(0, count - 1));
            existing_pod(random, flavor, index, &on)
        })
        .collect();
    let pod = pod(random, flavor, "wanting");
    Question { nodes, namespaces, pods, pod }
}

fn namespace(random: &mut Random, name: &str) -> Value {
    let mut labels = json!({"kubernetes.io/metadata.name": name});
    if random.percent(60) {
        labels["team"] = json!(random.pick(&["x", "y"]));
    }
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

// === nodes ===

fn node(random: &mut Random, flavor: Flavor, index: usize) -> Value {
    let name = format!("node-{index}");
    let mut labels = Map::new();
    if random.percent(90) {
        labels.insert(HOST.to_owned(), json!(name));
    }
    for (key, values, chance) in [
        (ZONE, &["a", "b", "c"][..], 85),
        (RACK, &["r1", "r2"], 70),
        ("disk", &["ssd", "hdd", ""], 60),
        ("generation", &["1", "2", "10", "007", "new"], 60),
    ] {
        if random.percent(chance) {
            labels.insert(key.to_owned(), json!(random.pick(values)));
        }
    }
    let mut allocatable = if flavor.resources {
        json!({
            "cpu": random.pick(&["500m", "1", "2", "4", "2500m"]),
            "memory": random.pick(&["256Mi", "1Gi", "2Gi", "4G"]),
            "pods": random.pick(&["1", "2", "4", "110"]),
        })
    } else {
        json!({"cpu": "64", "memory": "64Gi", "pods": "110", "ephemeral-storage": "1Ti", "hugepages-2Mi": "1Gi", GPU: "64"})
    };
    if flavor.resources && random.percent(50) {
        allocatable[GPU] = json!(random.pick(&["0", "1", "2", "4"]));
    }
    if flavor.resources && random.percent(30) {
        allocatable["ephemeral-storage"] = json!(random.pick(&["1Gi", "10G"]));
    }
    if flavor.resources && random.percent(20) {
        allocatable["hugepages-2Mi"] = json!(random.pick(&["2Mi", "8Mi"]));
    }
    let mut spec = json!({});
    if flavor.taints && random.percent(20) {
        spec["unschedulable"] = json!(true);
    }
    if flavor.taints && random.percent(50) {
        spec["taints"] = taints(random);
    }
    let mut status = json!({"capacity": allocatable, "allocatable": allocatable});
    if flavor.images {
        status["images"] = images(random);
    }
    if flavor.features && random.percent(70) {
        // What nobody asks for may be declared, too. The API server wants them sorted.
        status["declaredFeatures"] = json!(random.some(&[
            "ExtendWebSocketsToKubelet",
            "RestartAllContainersOnContainerExits",
            "UserNamespacesHostNetworkSupport",
        ]));
    }
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": spec,
        "status": status,
    })
}

/// Images that a node has. The same image has the same size everywhere, and some are known by several names.
fn images(random: &mut Random) -> Value {
    let known: [(&[&str], i64); 4] = [
        (&["docker.io/library/small:latest"], 20 << 20),
        (&["docker.io/library/large:latest", "example.com/alias/large:v1"], 700 << 20),
        (
            &[
                "registry.example.com:5000/huge@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            ],
            3 << 30,
        ),
        (&["docker.io/library/middle:v2"], 250 << 20),
    ];
    let there = random.some(&known).into_iter();
    json!(there.map(|(names, size)| json!({"names": names, "sizeBytes": size})).collect::<Vec<Value>>())
}

fn taints(random: &mut Random) -> Value {
    // A key and an effect occur once on a node.
    let mut taints = Vec::new();
    for key in random.some(&["dedicated", "gpu", "node.kubernetes.io/unschedulable"]) {
        for effect in random.some(&["NoSchedule", "PreferNoSchedule", "NoExecute"]) {
            let mut taint = json!({"key": key, "effect": effect});
            if random.percent(60) {
                taint["value"] = json!(random.pick(&["v1", "v2"]));
            }
            taints.push(taint);
        }
    }
    json!(taints)
}

// === pods ===

fn existing_pod(random: &mut Random, flavor: Flavor, index: usize, on: &str) -> Value {
    let mut pod = pod(random, flavor, &format!("pod-{index}"));
    pod["spec"]["nodeName"] = json!(on);
    let phase = if random.percent(85) {
        random.pick(&["Running", "Pending"])
    } else {
        random.pick(&["Succeeded", "Failed"])
    };
    pod["status"] = json!({"phase": phase});
    if random.percent(15) {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    }
    if random.percent(10) {
        // A resize under way: the node has promised one amount and applies another. It tells of every resource.
        let requests = pod["spec"]["containers"][0]["resources"]["requests"].clone();
        let mut amount = || {
            let mut amounts = requests.clone();
            amounts["cpu"] = json!(random.pick(&["50m", "750m", "2"]));
            amounts
        };
        let (allocated, applied) = (amount(), amount());
        pod["status"]["containerStatuses"] = json!([{
            "name": "c0", "image": "any", "imageID": "", "ready": true, "restartCount": 0,
            "allocatedResources": allocated, "resources": {"requests": applied},
        }]);
    }
    pod
}

fn pod(random: &mut Random, flavor: Flavor, name: &str) -> Value {
    let labels = labels(random);
    let mut spec = json!({
        "schedulerName": "tutti", "restartPolicy": "Always", "dnsPolicy": "Default",
        "terminationGracePeriodSeconds": 30,
        "containers": containers(random, flavor),
    });
    if random.percent(15) {
        spec["initContainers"] = init_containers(random, flavor);
    }
    if flavor.resources && spec["initContainers"].is_null() && random.percent(15) {
        // For the whole pod; not below what its containers can ask for together.
        let mut requests = json!({});
        for (resource, amounts) in random.some(&[("cpu", ["3", "4"]), ("memory", ["2Gi", "2500Mi"])]) {
            requests[resource] = json!(random.pick(&amounts));
        }
        spec["resources"] = json!({"requests": requests});
    }
    if random.percent(10) {
        spec["overhead"] = json!({"cpu": random.pick(&["10m", "250m"]), "memory": "16Mi"});
    }
    if flavor.node_affinity && random.percent(40) {
        let (key, values): (&str, &[&str]) =
            random.pick(&[("disk", &["ssd", "hdd", ""]), (ZONE, &["a", "b"])]);
        spec["nodeSelector"] = json!({key: random.pick(values)});
    }
    if flavor.taints && random.percent(70) {
        spec["tolerations"] = tolerations(random);
    }
    if flavor.features {
        needs_features(random, &mut spec);
    }
    let mut affinity = Map::new();
    if flavor.node_affinity {
        let mut rules = json!({});
        if random.percent(60) {
            rules[REQUIRED] = node_affinity(random);
        }
        if flavor.wishes && random.percent(60) {
            rules[PREFERRED] = wishes(random, "preference", node_term);
        }
        affinity.insert("nodeAffinity".to_owned(), rules);
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        if !flavor.inter_pod {
            continue;
        }
        let mut rules = json!({});
        if random.percent(if flavor.wishes { 20 } else { 40 }) {
            let terms: Vec<Value> = (0..random.between(1, 2)).map(|_| pod_term(random)).collect();
            rules[REQUIRED] = json!(terms);
        }
        if flavor.wishes && random.percent(50) {
            rules[PREFERRED] = wishes(random, "podAffinityTerm", pod_term);
        }
        affinity.insert(field.to_owned(), rules);
    }
    if !affinity.is_empty() {
        spec["affinity"] = Value::Object(affinity);
    }
    if flavor.spread && random.percent(70) {
        spec["topologySpreadConstraints"] = spread(random, flavor, &labels);
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": random.pick(&NAMESPACES), "uid": name, "labels": labels},
        "spec": spec,
    })
}

/// What only nodes with a declared feature can do, and what looks like it.
fn needs_features(random: &mut Random, spec: &mut Value) {
    for list in ["containers", "initContainers"] {
        if spec[list][0].is_object() && random.percent(40) {
            let container = &mut spec[list][0];
            if container["restartPolicy"].is_null() {
                container["restartPolicy"] = json!("Never");
            }
            if container["restartPolicy"] != "Always" {
                container["restartPolicyRules"] = json!([{
                    "action": random.pick(&["Restart", "RestartAllContainers"]),
                    "exitCodes": {"operator": "In", "values": [42]},
                }]);
            }
        }
    }
    // With the network of the node as well it would need a feature, but that is off in both releases.
    if random.percent(20) {
        spec["hostUsers"] = json!(false);
    }
}

fn labels(random: &mut Random) -> Map<String, Value> {
    let mut labels = Map::new();
    for (key, values, chance) in [("app", &["a", "b"][..], 85), ("tier", &["1", "2", ""], 60)] {
        if random.percent(chance) {
            labels.insert(key.to_owned(), json!(random.pick(values)));
        }
    }
    labels
}

fn containers(random: &mut Random, flavor: Flavor) -> Value {
    let containers: Vec<Value> = (0..random.between(1, 2))
        .map(|index| {
            let mut container = container(random, &format!("c{index}"));
            if flavor.ports && random.percent(40) {
                // Containers of a pod share no port.
                container["ports"] = ports(random, [[80, 81], [82, 83]][index]);
            }
            container
        })
        .collect();
    json!(containers)
}

fn init_containers(random: &mut Random, flavor: Flavor) -> Value {
    let containers: Vec<Value> = (0..random.between(1, 3))
        .map(|index| {
            let mut container = container(random, &format!("i{index}"));
            if random.percent(40) {
                container["restartPolicy"] = json!("Always");
            }
            if flavor.ports && index == 0 && random.percent(50) {
                container["ports"] = ports(random, [81, 83]);
            }
            container
        })
        .collect();
    json!(containers)
}

fn container(random: &mut Random, name: &str) -> Value {
    let mut requests = Map::new();
    let mut limits = Map::new();
    if random.percent(75) {
        requests.insert("cpu".to_owned(), json!(random.pick(&CPUS)));
    }
    if random.percent(60) {
        requests.insert("memory".to_owned(), json!(random.pick(&MEMORIES)));
    }
    if random.percent(10) {
        requests.insert("ephemeral-storage".to_owned(), json!(random.pick(&["1Gi", "6G"])));
    }
    // These may not be overcommitted: the limit is the request.
    if random.percent(20) {
        let amount = json!(random.pick(&["0", "1", "2"]));
        requests.insert(GPU.to_owned(), amount.clone());
        limits.insert(GPU.to_owned(), amount);
    }
    if random.percent(5) {
        let amount = json!(random.pick(&["2Mi", "4Mi"]));
        for (resource, amount) in
            [("hugepages-2Mi", amount), ("memory", json!("64Mi")), ("cpu", json!("100m"))]
        {
            requests.insert(resource.to_owned(), amount.clone());
            limits.insert(resource.to_owned(), amount);
        }
    }
    json!({
        "name": name, "image": random.pick(&IMAGES), "imagePullPolicy": "Always",
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "resources": {"requests": requests, "limits": limits},
    })
}

fn ports(random: &mut Random, among: [u16; 2]) -> Value {
    let ports: Vec<Value> = random
        .some(&among)
        .into_iter()
        .map(|port| {
            let mut entry = json!({"containerPort": port, "protocol": random.pick(&["TCP", "UDP"])});
            if random.percent(85) {
                entry["hostPort"] = json!(port);
                if random.percent(50) {
                    entry["hostIP"] = json!(random.pick(&["0.0.0.0", "127.0.0.1", "10.0.0.1"]));
                }
            }
            entry
        })
        .collect();
    json!(ports)
}

fn tolerations(random: &mut Random) -> Value {
    let tolerations: Vec<Value> = (0..random.between(1, 3))
        .map(|_| {
            let mut toleration = Map::new();
            let exists = random.percent(50);
            let any_key = exists && random.percent(20);
            if !any_key {
                let key = random.pick(&["dedicated", "gpu", "node.kubernetes.io/unschedulable"]);
                toleration.insert("key".to_owned(), json!(key));
            }
            if exists {
                toleration.insert("operator".to_owned(), json!("Exists"));
            } else {
                if random.percent(50) {
                    toleration.insert("operator".to_owned(), json!("Equal"));
                }
                if random.percent(80) {
                    toleration.insert("value".to_owned(), json!(random.pick(&["v1", "v2"])));
                }
            }
            if random.percent(60) {
                let effect = random.pick(&["NoSchedule", "PreferNoSchedule", "NoExecute"]);
                toleration.insert("effect".to_owned(), json!(effect));
                if effect == "NoExecute" && random.percent(50) {
                    toleration.insert("tolerationSeconds".to_owned(), json!(random.pick(&[0, 30])));
                }
            }
            Value::Object(toleration)
        })
        .collect();
    json!(tolerations)
}

fn node_affinity(random: &mut Random) -> Value {
    let terms: Vec<Value> = (0..random.between(1, 2)).map(|_| node_term(random)).collect();
    json!({"nodeSelectorTerms": terms})
}

fn node_term(random: &mut Random) -> Value {
    let mut term = json!({});
    if random.percent(85) {
        let expressions: Vec<Value> = (0..random.between(1, 2)).map(|_| node_expression(random)).collect();
        term["matchExpressions"] = json!(expressions);
    }
    if random.percent(25) {
        let operator = random.pick(&["In", "NotIn"]);
        let node = format!("node-{}", random.between(0, 5));
        term["matchFields"] = json!([{"key": "metadata.name", "operator": operator, "values": [node]}]);
    }
    term
}

/// Terms with weights.
fn wishes(random: &mut Random, field: &str, term: fn(&mut Random) -> Value) -> Value {
    let wish = |random: &mut Random| {
        let weight = random.pick(&[1, 2, 7, 33, 50, 100]);
        json!({"weight": weight, field: term(random)})
    };
    json!((0..random.between(1, 3)).map(|_| wish(random)).collect::<Vec<Value>>())
}

fn node_expression(random: &mut Random) -> Value {
    match random.pick(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]) {
        operator @ ("Gt" | "Lt") => {
            json!({"key": "generation", "operator": operator, "values": [random.pick(&["0", "1", "5", "9"])]})
        }
        operator @ ("In" | "NotIn") => {
            let (key, values): (&str, &[&str]) = random.pick(&[
                ("disk", &["ssd", "hdd", ""]),
                (ZONE, &["a", "b", "c"]),
                (RACK, &["r1", "r2"]),
            ]);
            json!({"key": key, "operator": operator, "values": random.some(values)})
        }
        operator => json!({"key": random.pick(&["disk", ZONE, RACK]), "operator": operator}),
    }
}

fn pod_term(random: &mut Random) -> Value {
    let mut term = json!({"topologyKey": random.pick(&KEYS)});
    if random.percent(95) {
        term["labelSelector"] = label_selector(random);
    }
    if random.percent(25) {
        term["namespaces"] = json!(random.some(&NAMESPACES));
    }
    if random.percent(25) {
        term["namespaceSelector"] = match random.between(0, 2) {
            0 => json!({}),
            1 => json!({"matchLabels": {"team": "x"}}),
            _ => json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}),
        };
    }
    term
}

fn label_selector(random: &mut Random) -> Value {
    let mut selector = json!({});
    if random.percent(60) {
        selector["matchLabels"] = json!({"app": random.pick(&["a", "b"])});
    }
    if random.percent(40) {
        let (key, values): (&str, &[&str]) = random.pick(&[("app", &["a", "b"]), ("tier", &["1", "2", ""])]);
        let mut expression =
            json!({"key": key, "operator": random.pick(&["In", "NotIn", "Exists", "DoesNotExist"])});
        if matches!(expression["operator"].as_str(), Some("In" | "NotIn")) {
            expression["values"] = json!(random.some(values));
        }
        selector["matchExpressions"] = json!([expression]);
    }
    selector
}

fn spread(random: &mut Random, flavor: Flavor, labels: &Map<String, Value>) -> Value {
    // A key occurs once for each answer to "what if not".
    let constraints: Vec<Value> = random
        .some(&KEYS)
        .into_iter()
        .map(|key| {
            let strict = random.percent(if flavor.wishes { 40 } else { 95 });
            let mut constraint = json!({
                "topologyKey": key,
                "maxSkew": random.between(1, 2),
                "whenUnsatisfiable": if strict { "DoNotSchedule" } else { "ScheduleAnyway" },
            });
            if strict && random.percent(25) {
                constraint["minDomains"] = json!(random.between(1, 4));
            }
            for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
                if random.percent(40) {
                    constraint[policy] = json!(random.pick(&["Honor", "Ignore"]));
                }
            }
            if random.percent(90) {
                constraint["labelSelector"] = label_selector(random);
                match_label_key(random, labels, &mut constraint);
            }
            constraint
        })
        .collect();
    json!(constraints)
}

/// The API server writes what a key stands for into the selector when the pod is created.
fn match_label_key(random: &mut Random, labels: &Map<String, Value>, constraint: &mut Value) {
    let selector = &mut constraint["labelSelector"];
    let key = "tier";
    if selector.to_string().contains(key) || !random.percent(15) {
        return;
    }
    if let Some(value) = labels.get(key) {
        let expression = json!({"key": key, "operator": "In", "values": [value]});
        match selector["matchExpressions"].as_array_mut() {
            Some(expressions) => expressions.push(expression),
            None => selector["matchExpressions"] = json!([expression]),
        }
    }
    constraint["matchLabelKeys"] = json!([key]);
}
