//! Stories that must end well on every release, with Tutti as the scheduler.

mod deploy;
mod embedded;
mod faults;
mod gangs;
mod kubectl;
mod minimum;
mod nodes;
mod scheduler;

use crate::world::World;
use futures::future::BoxFuture;

/// A story: what it claims, and the telling of it.
pub(crate) struct Story {
    pub(crate) name: &'static str,
    /// True if it kills parts of the control plane, which must be ours for that.
    pub(crate) kills: bool,
    pub(crate) tell: for<'a> fn(&'a World<'a>) -> BoxFuture<'a, anyhow::Result<()>>,
}

macro_rules! stories {
    ($($kills:literal $module:ident :: $name:ident),+ $(,)?) => {
        [$(Story { name: stringify!($name), kills: $kills, tell: |world| Box::pin($module::$name(world)) }),+]
    };
}

/// All stories, in the order in which they are told.
pub(crate) fn all() -> Vec<Story> {
    stories![
        false gangs::a_gang_of_four_runs,
        false gangs::six_of_eight_start_nothing_until_a_node_joins,
        false gangs::a_mixed_gang_is_placed_where_only_one_way_fits,
        false gangs::a_basic_group_starts_with_whoever_fits,
        false gangs::a_quorum_starts_without_the_rest,
        false gangs::late_members_join_and_a_late_group_is_waited_for,
        false gangs::a_deleted_gang_makes_room_and_its_group_waits_for_its_pods,
        false gangs::plain_pods_are_placed_and_restarted_schedulers_go_on,
        false minimum::a_minimum_that_is_lowered_lets_a_waiting_gang_start,
        false minimum::a_minimum_that_is_raised_holds_for_members_that_wait,
        false kubectl::people_see_with_kubectl_what_happens,
        false nodes::tutti_nodes_creates_nodes_and_adopts_others,
        false deploy::a_scheduler_with_exactly_the_rights_of_deploy_works,
        false deploy::pod_groups_of_our_own_work_where_kubernetes_has_none,
        false scheduler::of_two_schedulers_one_leads_and_the_other_takes_over,
        false scheduler::without_kube_scheduler_pods_that_name_none_are_placed,
        false scheduler::a_scheduler_killed_in_the_middle_of_a_gang_leaves_no_part_of_it,
        true scheduler::a_leader_that_loses_its_api_server_goes_on_when_it_is_back,
        false faults::a_lost_node_takes_its_pods_and_others_come,
        false embedded::the_real_kube_scheduler_schedules_on_the_embedded_cluster,
        true faults::an_api_server_that_is_killed_costs_nothing,
        true faults::an_etcd_that_is_killed_costs_nothing,
    ]
    .into()
}
