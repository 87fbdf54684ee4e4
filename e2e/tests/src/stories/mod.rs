//! Stories that must end well on every release, with Tutti as the scheduler.

mod beside;
mod bound_volumes;
mod closed_nodes;
mod deploy;
mod embedded;
mod faults;
mod features;
mod gangs;
mod gated;
mod hook;
mod job_shapes;
mod jobs;
mod kills;
mod kubectl;
mod marking;
mod minimum;
mod nodes;
mod policy;
mod restarts;
mod rival;
mod scheduler;
mod silence;
mod spread;
mod stamp;
mod storage;
mod topology;
mod unwinding;
mod volumes;
mod webhooks;

use crate::world::World;
use futures::future::BoxFuture;

/// A story: what it claims, and the telling of it.
pub(crate) struct Story {
    pub(crate) name: &'static str,
    pub(crate) needs: Needs,
    pub(crate) tell: for<'a> fn(&'a World<'a>) -> BoxFuture<'a, anyhow::Result<()>>,
}

/// What a story needs that not every cluster has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    /// It kills parts of the control plane, which must be ours for that.
    OwnControlPlane,
    /// The real kube-scheduler, as a binary to start.
    KubeScheduler,
    /// The `helm` command.
    Helm,
    /// Composite pod groups, which came with 1.37.
    Composites,
    /// Groups whose minimum may be changed, which came with 1.37.
    ChangingMinimum,
}

macro_rules! stories {
    ($($needs:ident $module:ident :: $name:ident),+ $(,)?) => {
        [$(Story { name: stringify!($name), needs: Needs::$needs, tell: |world| Box::pin($module::$name(world)) }),+]
    };
}

/// All stories, in the order in which they are told.
pub(crate) fn all() -> Vec<Story> {
    stories![
        Nothing gangs::a_gang_of_four_runs,
        Nothing gangs::six_of_eight_start_nothing_until_a_node_joins,
        Nothing gangs::a_mixed_gang_is_placed_where_only_one_way_fits,
        Nothing gangs::a_basic_group_starts_with_whoever_fits,
        Nothing gangs::a_quorum_starts_without_the_rest,
        Nothing gangs::late_members_join_and_a_late_group_is_waited_for,
        Nothing gangs::a_deleted_gang_makes_room_and_its_group_waits_for_its_pods,
        Nothing gangs::plain_pods_are_placed_and_restarted_schedulers_go_on,
        Nothing marking::a_thousand_members_without_room_are_told_within_seconds,
        Nothing marking::a_gang_that_only_lacks_members_is_not_called_unschedulable,
        Nothing minimum::a_gang_with_fewer_members_than_its_minimum_is_never_tried,
        ChangingMinimum minimum::a_minimum_that_is_lowered_lets_a_waiting_gang_start,
        ChangingMinimum minimum::a_minimum_that_is_lowered_lets_a_gang_of_too_few_members_start,
        ChangingMinimum minimum::a_minimum_that_is_raised_holds_for_members_that_wait,
        ChangingMinimum minimum::a_minimum_that_is_raised_above_what_runs_holds_for_those_who_come,
        Nothing minimum::members_beyond_the_minimum_wait_without_harm_and_come_one_by_one,
        Nothing minimum::members_of_a_basic_group_that_runs_wait_without_harm,
        Nothing gated::a_gated_member_holds_its_group_until_all_have_room_in_one_rack,
        Nothing gated::a_group_that_starts_without_gated_members_goes_where_they_have_room,
        Nothing features::a_pod_that_needs_a_feature_goes_where_it_is_declared,
        Nothing topology::topology_of_a_group_is_required_pinned_preferred_and_explained,
        Nothing topology::topology_annotations_make_slices_and_bad_ones_hurt_nobody_else,
        Nothing topology::topology_of_ranks_keeps_neighbours_near_and_the_leader_with_the_first,
        Nothing topology::topology_that_somebody_else_has_broken_is_told_of_and_not_broken_further,
        Nothing topology::topology_with_equal_room_left_goes_by_how_full_racks_are,
        Composites topology::topology_of_a_tree_is_solved_as_one_and_every_node_of_it_says_so,
        Composites topology::topology_of_a_tree_that_is_contradicted_takes_replacements_and_no_new_groups,
        Nothing volumes::local_volumes_are_given_once_each_to_a_gang,
        Nothing volumes::a_gang_waits_until_all_its_volumes_are_made,
        Nothing volumes::volumes_that_take_too_long_cost_the_gang_its_seats_until_it_is_tried_again,
        Nothing bound_volumes::bound_volumes_say_where_members_can_go,
        Nothing bound_volumes::nodes_get_no_more_volumes_than_they_can_attach,
        Nothing bound_volumes::a_claim_for_one_pod_is_waited_for_by_the_whole_gang,
        Nothing jobs::jobs_become_gangs_where_nobody_else_makes_groups,
        Nothing jobs::three_hundred_jobs_at_once_are_gangs_and_leave_nothing,
        Nothing job_shapes::jobs_that_do_not_ask_for_a_gang_are_left_alone,
        Nothing job_shapes::jobs_of_cron_jobs_and_of_long_names_are_gangs,
        Nothing job_shapes::members_that_succeed_early_do_not_break_the_gang,
        Nothing job_shapes::a_controller_killed_at_any_moment_leaves_one_group_for_every_job,
        OwnControlPlane jobs::jobs_of_a_cluster_that_makes_groups_itself_are_left_to_it,
        Nothing stamp::a_workload_gives_groups_to_pods_and_jobs_that_name_its_templates,
        Composites stamp::a_tree_is_made_once_by_a_controller_that_is_killed_meanwhile,
        Nothing webhooks::a_pod_of_a_job_with_a_group_names_it_and_what_can_never_run_is_warned_of,
        Nothing webhooks::certificates_change_under_load_and_no_request_is_lost,
        Nothing webhooks::controllers_with_exactly_the_rights_of_deploy_make_groups_and_answer,
        Nothing webhooks::without_webhooks_pods_are_created_and_jobs_start_whole,
        Nothing kubectl::people_see_with_kubectl_what_happens,
        Nothing nodes::tutti_nodes_creates_nodes_and_adopts_others,
        Nothing deploy::a_scheduler_with_exactly_the_rights_of_deploy_works,
        Helm deploy::the_chart_renders_to_what_the_api_server_takes,
        Nothing deploy::pod_groups_of_our_own_work_where_kubernetes_has_none,
        Nothing scheduler::of_two_schedulers_one_leads_and_the_other_takes_over,
        Nothing scheduler::without_kube_scheduler_pods_that_name_none_are_placed,
        Nothing kills::a_scheduler_killed_in_the_middle_of_a_gang_leaves_no_part_of_it,
        Nothing restarts::a_scheduler_killed_soon_after_every_start_completes_broken_gangs_first,
        OwnControlPlane scheduler::a_leader_that_loses_its_api_server_goes_on_when_it_is_back,
        Nothing unwinding::a_gang_that_cannot_be_bound_whole_is_taken_back_and_starts_again,
        Nothing unwinding::a_gang_that_was_complete_is_taken_back_if_its_group_asks_for_it,
        Nothing rival::a_gang_does_not_start_on_room_that_somebody_else_took_while_it_waited_for_volumes,
        Nothing rival::a_race_for_room_that_is_lost_costs_a_member_but_not_the_gang,
        Nothing faults::a_lost_node_takes_its_pods_and_others_come,
        Nothing silence::a_gang_on_a_silent_node_is_reported_and_completed_first,
        KubeScheduler beside::kube_scheduler_and_tutti_share_nodes,
        KubeScheduler closed_nodes::pods_go_to_nodes_that_were_closed_before_no_more_often_than_with_kube_scheduler,
        KubeScheduler spread::pods_of_a_service_go_where_kube_scheduler_sends_them,
        KubeScheduler embedded::the_real_kube_scheduler_schedules_on_the_embedded_cluster,
        OwnControlPlane faults::an_api_server_that_is_killed_costs_nothing,
        OwnControlPlane kills::an_api_server_killed_in_the_middle_of_a_gang_leaves_no_part_of_it,
        OwnControlPlane faults::an_etcd_that_is_killed_costs_nothing,
    ]
    .into()
}
