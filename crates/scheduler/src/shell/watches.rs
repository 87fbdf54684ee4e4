//! Which kinds are watched, and what their objects become.

use super::connections::Connections;
use super::status::Status;
use super::watch::Watch;
use super::workloads::Seen;
use crate::config::Config;
use crate::core::message::Input;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::fmt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tutti_k8s::gangs::JobView;
use tutti_k8s::kin::SelectingKind;
use tutti_k8s::view::View;
use tutti_k8s::{
    BudgetView, Capabilities, ClaimView, ClassView, CompositeView, CsiNodeView, NamespaceView, NodeView,
    ObjectKind, PodGroupView, PodView, PriorityClassView, VolumeView, WorkloadView, kin,
};

/// Starts a watch of every kind that the cluster serves.
pub(super) fn start(
    connections: &Connections,
    config: &Config,
    capabilities: &Capabilities,
    input: &mpsc::Sender<Seen>,
    status: &Status,
    tasks: &mut JoinSet<()>,
) {
    let mut watches = Watches { connections, input, status, tasks };
    watches.start_cluster(capabilities);
    watches.start_groups(capabilities);
    if capabilities.storage {
        watches.start_storage();
    }
    if capabilities.optional {
        watches.start_optional();
        if config.job_groups(capabilities).is_some() {
            watches.start_jobs();
        }
    }
}

struct Watches<'a> {
    connections: &'a Connections,
    input: &'a mpsc::Sender<Seen>,
    status: &'a Status,
    tasks: &'a mut JoinSet<()>,
}

impl Watches<'_> {
    fn start_cluster(&mut self, capabilities: &Capabilities) {
        let link = capabilities.link;
        self.start(
            ObjectKind::Pod,
            Api::all,
            move |pod: PodView| Input::PodSet(Box::new(pod.read_linked(link))),
            |pod: PodView| Input::PodGone(pod.key()),
        );
        self.start(
            ObjectKind::Node,
            Api::all,
            |node: NodeView| Input::NodeSet(Box::new(node.read())),
            |node: NodeView| Input::NodeGone(node.key().name),
        );
        self.start(
            ObjectKind::Namespace,
            Api::all,
            |namespace: NamespaceView| Input::NamespaceSet {
                name: namespace.key().name,
                labels: namespace.read_labels(),
            },
            |namespace: NamespaceView| Input::NamespaceGone(namespace.key().name),
        );
    }

    fn start_groups(&mut self, capabilities: &Capabilities) {
        if let Some(resource) = &capabilities.composite {
            self.start(
                ObjectKind::Composite,
                |client| Api::all_with(client, resource),
                |composite: CompositeView| Input::CompositeSet(Box::new(composite.read())),
                |composite: CompositeView| Input::CompositeGone(composite.key()),
            );
        }
        let Some(resource) = &capabilities.pod_group else {
            return;
        };
        if capabilities.link.has_group_objects() {
            let condition = capabilities.group_condition;
            self.start(
                ObjectKind::PodGroup,
                |client| Api::all_with(client, resource),
                move |group: PodGroupView| Input::GroupSet(Box::new(group.read(condition))),
                |group: PodGroupView| Input::GroupGone(group.key()),
            );
        } else {
            let workloads = Watch {
                kind: ObjectKind::PodGroup,
                what: "workload",
                started: || Seen::WorkloadsStarted,
                done: || Seen::WorkloadsDone,
                set: |workload: WorkloadView| Seen::WorkloadSet(Box::new(workload.read())),
                gone: |workload: WorkloadView| Seen::WorkloadGone(workload.key()),
                unchanged: self.status.metrics.unchanged.clone(),
                rest: None,
            };
            let client = self.observed(workloads.kind, workloads.what, &self.connections.client);
            let api = Api::<WorkloadView>::all_with(client, resource);
            self.tasks.spawn(workloads.run(api, self.input.clone()));
        }
    }

    fn start_storage(&mut self) {
        self.start(
            ObjectKind::Claim,
            Api::all,
            |claim: ClaimView| Input::ClaimSet(Box::new(claim.read())),
            |claim: ClaimView| Input::ClaimGone(claim.key()),
        );
        self.start(
            ObjectKind::Volume,
            Api::all,
            |volume: VolumeView| Input::VolumeSet(Box::new(volume.read())),
            |volume: VolumeView| Input::VolumeGone(volume.key().name),
        );
        self.start(
            ObjectKind::StorageClass,
            Api::all,
            |class: ClassView| Input::ClassSet(Box::new(class.read())),
            |class: ClassView| Input::ClassGone(class.name()),
        );
        self.start(
            ObjectKind::CsiNode,
            Api::all,
            |node: CsiNodeView| Input::LimitsSet(Box::new(node.read())),
            |node: CsiNodeView| Input::LimitsGone(node.key().name),
        );
    }

    fn start_optional(&mut self) {
        self.start_kin::<kin::ServiceKind>();
        self.start_kin::<kin::ReplicationControllerKind>();
        self.start_kin::<kin::ReplicaSetKind>();
        self.start_kin::<kin::StatefulSetKind>();
        self.start(
            ObjectKind::PriorityClass,
            Api::all,
            |class: PriorityClassView| Input::PriorityClassSet(Box::new(class.read())),
            |class: PriorityClassView| Input::PriorityClassGone(class.name()),
        );
        self.start(
            ObjectKind::Budget,
            Api::all,
            |budget: BudgetView| Input::BudgetSet(Box::new(budget.read())),
            |budget: BudgetView| Input::BudgetGone(budget.key()),
        );
    }

    fn start_jobs(&mut self) {
        self.start(
            ObjectKind::Job,
            Api::all,
            |job: JobView| Input::JobSet(Box::new(job.read())),
            |job: JobView| Input::JobGone(job.key()),
        );
    }

    /// Objects that say which pods do the same.
    fn start_kin<K: SelectingKind<Dynamic = ()>>(&mut self) {
        self.start(
            K::KIND,
            Api::all,
            |object: View<K>| Input::SelectorSet(Box::new(object.read_selected())),
            |object: View<K>| Input::SelectorGone(K::KIND, object.key()),
        );
    }

    /// A client for the watch of a kind: it is noticed if nobody answers.
    fn observed(&self, kind: ObjectKind, what: &str, client: &Client) -> Client {
        let may_be_refused = ObjectKind::OPTIONAL.contains(&kind);
        self.status.pulses.of(format!("the watch of {what} objects"), may_be_refused).observe(client)
    }

    /// A watch whose objects the core understands.
    fn start<V>(
        &mut self,
        kind: ObjectKind,
        api: impl FnOnce(Client) -> Api<V>,
        set: impl Fn(V) -> Input + Send + 'static,
        gone: impl Fn(V) -> Input + Send + 'static,
    ) where
        V: Resource + Clone + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
    {
        // Kubelets talk most, and what they say is never urgent.
        let paced = self.connections.paced.as_ref().filter(|_| kind == ObjectKind::Node);
        let watch = Watch {
            kind,
            what: kind.as_str(),
            started: move || Seen::Input(Input::ListStarted(kind)),
            done: move || Seen::Input(Input::ListDone(kind)),
            set: move |object| Seen::Input(set(object)),
            gone: move |object| Seen::Input(gone(object)),
            unchanged: self.status.metrics.unchanged.clone(),
            rest: paced.map(|(_, thread)| thread.resting()),
        };
        let client = paced.map_or(&self.connections.client, |(client, _)| client);
        let api = api(self.observed(kind, watch.what, client));
        let task = watch.run(api, self.input.clone());
        match paced {
            Some((_, thread)) => thread.spawn(task, self.tasks),
            None => drop(self.tasks.spawn(task)),
        }
    }
}
