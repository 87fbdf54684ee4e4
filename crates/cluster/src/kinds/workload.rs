//! Rules for Workload: a tree of templates.

use super::field::{Field, same};
use super::groups::{check_frozen, check_group, check_members};
use super::names::{dns_label, dns_subdomain, path_segment};
use crate::error::Cause;
use serde_json::Value;
use std::collections::BTreeSet;

/// Most templates in one list.
const TEMPLATES_MAX: usize = 8;
/// Levels of a tree of groups, the leaves included.
const TREE_DEPTH_MAX: usize = 4;
const LEAVES: &str = "podGroupTemplates";
const COMPOSITES: &str = "compositePodGroupTemplates";

/// What is wrong with the spec of a Workload.
pub(super) fn validate(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    let controller = spec.get("controllerRef");
    if controller.is_set() {
        let group = controller.get("apiGroup");
        if !group.text().is_empty() {
            group.check_text(dns_subdomain, out);
        }
        controller.get("kind").check_required_text(path_segment, out);
        controller.get("name").check_required_text(path_segment, out);
    }
    check_lists_union(&spec, out);
    let mut tree = Tree { names: BTreeSet::new() };
    tree.check_children(&spec, 1, out);
}

/// All templates have the same priority, since 1.37.
pub(super) fn validate_priorities(root: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let spec = root.get("spec");
    let mut first = None;
    if priorities_differ(&spec, 1, &mut first) {
        out.push(spec.invalid_value("null", "detected multiple priority configurations"));
    }
}

/// `first` is priority and class of the first template. No priority and priority 0 are different here: the first one
/// is still to be resolved.
fn priorities_differ<'v>(
    holder: &Field<'_, 'v>,
    depth: usize,
    first: &mut Option<(Option<&'v Value>, Option<&'v Value>)>,
) -> bool {
    depth <= TREE_DEPTH_MAX
        && [LEAVES, COMPOSITES].into_iter().any(|list| {
            holder.get(list).items().any(|template| {
                let own = (template.get("priority").value(), template.get("priorityClassName").value());
                let first_seen = *first.get_or_insert(own);
                !same(first_seen.0, own.0)
                    || !same(first_seen.1, own.1)
                    || priorities_differ(&template, depth + 1, first)
            })
        })
}

/// What is wrong with replacing the spec of a Workload.
pub(super) fn validate_update(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (old, new) = (old.get("spec"), new.get("spec"));
    new.get("controllerRef").check_frozen(&old.get("controllerRef"), out);
    check_children_frozen(&old, &new, 1, out);
}

/// What is wrong with replacing the spec of a Workload before 1.37, when templates could not change at all.
pub(super) fn validate_update_before_1_37(old: &Field<'_, '_>, new: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let (old, new) = (old.get("spec"), new.get("spec"));
    new.get("controllerRef").check_frozen(&old.get("controllerRef"), out);
    new.get(LEAVES).check_frozen(&old.get(LEAVES), out);
}

/// An empty list is no list, so the members of this union are counted by their entries.
fn check_lists_union(spec: &Field<'_, '_>, out: &mut Vec<Cause>) {
    let lists = [LEAVES, COMPOSITES];
    let set: Vec<&str> = lists.iter().filter(|list| spec.get(list).len() > 0).copied().collect();
    check_members(spec, &lists, &set, out);
}

/// What is remembered while the tree of templates is walked.
struct Tree<'v> {
    /// Names seen so far; they are unique over the whole tree, since groups refer to them by name only.
    names: BTreeSet<&'v str>,
}

impl<'v> Tree<'v> {
    fn check_children(&mut self, holder: &Field<'_, 'v>, depth: usize, out: &mut Vec<Cause>) {
        for (list, count) in [(LEAVES, "minCount"), (COMPOSITES, "minGroupCount")] {
            let list_field = holder.get(list);
            list_field.check_len(TEMPLATES_MAX, out);
            for template in list_field.items() {
                self.check_template(&template, count, out);
                if list == COMPOSITES {
                    self.check_composite(&template, depth, out);
                }
            }
        }
    }

    fn check_composite(&mut self, template: &Field<'_, 'v>, depth: usize, out: &mut Vec<Cause>) {
        // The leaves below are one level deeper. Stopping here also bounds the recursion.
        if depth >= TREE_DEPTH_MAX {
            out.push(template.invalid_value(
                &depth.to_string(),
                &format!("the tree of groups may have at most {TREE_DEPTH_MAX} levels, its leaves included"),
            ));
            return;
        }
        if template.get(LEAVES).len() + template.get(COMPOSITES).len() == 0 {
            out.push(template.invalid_value(
                &format!("{:?}", template.get("name").text()),
                "must have at least one child PodGroupTemplate or CompositePodGroupTemplate",
            ));
        }
        self.check_children(template, depth + 1, out);
    }

    fn check_template(&mut self, template: &Field<'_, 'v>, count: &'static str, out: &mut Vec<Cause>) {
        let name = template.get("name");
        name.check_required_text(dns_label, out);
        if let Some(text) = name.str()
            && !self.names.insert(text)
        {
            out.push(name.duplicate());
        }
        check_group(template, count, out);
    }
}

/// Templates may not come, go or change, except for the number that a gang needs.
fn check_children_frozen(old: &Field<'_, '_>, new: &Field<'_, '_>, depth: usize, out: &mut Vec<Cause>) {
    if depth > TREE_DEPTH_MAX {
        return;
    }
    for list in [LEAVES, COMPOSITES] {
        let (old_list, new_list) = (old.get(list), new.get(list));
        let name = |field: &Field<'_, '_>| field.get("name").text().to_owned();
        let old_names: BTreeSet<String> = old_list.items().map(|t| name(&t)).collect();
        let new_names: BTreeSet<String> = new_list.items().map(|t| name(&t)).collect();
        for template in new_list.items().filter(|template| !old_names.contains(&name(template))) {
            out.push(template.forbidden("item may not be added"));
        }
        for _ in old_names.difference(&new_names) {
            out.push(new_list.forbidden("item may not be removed"));
        }
        for new_template in new_list.items() {
            let before = old_list.items().find(|t| t.get("name").text() == new_template.get("name").text());
            if let Some(before) = before {
                check_frozen(&before, &new_template, out);
                check_children_frozen(&before, &new_template, depth + 1, out);
            }
        }
    }
}
