//! What no placement can do, told without searching: every group by itself, on everything that is free.

use super::ground::{Ground, Region};
use super::slicing::Slicing;
use crate::solve::budget::Budget;
use crate::state::hierarchy::NO_DOMAIN;

/// True if it is certain that the tree cannot have what it needs.
pub(super) fn exclude(ground: &Ground<'_>, budget: &mut Budget) -> bool {
    let everywhere = ground.everywhere();
    let met = ground.tree.met(&vec![0; ground.tree.parts.len()]);
    let mut bounds = Bounds { ground, met, budget, is_over: false };
    let can_be_met = bounds.can_be_met(0, &everywhere)
        && ground.tree.groups().any(|group| {
            let need = ground.part(group).need().max(1);
            !ground.kinds_of(group).is_empty() && bounds.has_room(group, need, &everywhere)
        });
    !can_be_met && !bounds.is_over
}

/// By part: the most new members that could ever be placed together, if all bins were for them. Nothing if the budget
/// does not last.
pub(super) fn most_by_part(ground: &Ground<'_>, budget: &mut Budget) -> Option<Vec<u64>> {
    most_and_reach(ground, budget).map(|(most, _)| most)
}

/// By part: bins that are in any domain of the level that it requires, and so for all that it is part of.
pub(super) fn reach(ground: &Ground<'_>, budget: &mut Budget) -> Option<Vec<Region>> {
    most_and_reach(ground, budget).map(|(_, reach)| reach)
}

fn most_and_reach(ground: &Ground<'_>, budget: &mut Budget) -> Option<(Vec<u64>, Vec<Region>)> {
    let mut reach: Vec<Region> = Vec::with_capacity(ground.tree.parts.len());
    let mut most = Vec::with_capacity(ground.tree.parts.len());
    for (at, part) in ground.tree.parts.iter().enumerate() {
        if !budget.spend(ground.looks(4) + ground.cost_of_fit(at)) {
            return None;
        }
        let within = part.parent.map_or_else(|| ground.everywhere(), |parent| reach[parent].clone());
        let Some(level) = part.required() else {
            most.push(ground.fit(at, &within));
            reach.push(within);
            continue;
        };
        let anchor = ground.anchor(at, at, level);
        let fits = ground.fit_by_domain(at, level, &within);
        let allowed = |&(domain, _): &(usize, u64)| anchor.allows(domain as u32);
        most.push(fits.into_iter().enumerate().filter(allowed).map(|(_, fit)| fit).max().unwrap_or(0));
        let of_bin = ground.domains(at, level).iter().zip(within);
        reach.push(of_bin.map(|(&domain, inside)| inside && anchor.allows(domain)).collect());
    }
    Some((most, reach))
}

struct Bounds<'b, 'g> {
    ground: &'b Ground<'g>,
    /// By part: whether it has what it needs with nobody new.
    met: Vec<bool>,
    budget: &'b mut Budget,
    /// The budget has ended; from then on nothing is excluded.
    is_over: bool,
}

impl Bounds<'_, '_> {
    fn can_spend(&mut self, steps: usize) -> bool {
        self.is_over |= !self.budget.spend(steps);
        !self.is_over
    }

    /// False if a part cannot have what it needs in a region, even with nobody else around.
    fn can_be_met(&mut self, part: usize, within: &Region) -> bool {
        let ground = self.ground;
        let asks = ground.part(part);
        if self.met[part] {
            return true;
        }
        if asks.is_group {
            return self.has_room(part, asks.need(), within);
        }
        let Some(level) = asks.required() else { return self.are_children_met(part, within) };
        if !self.can_spend(ground.cost_of_domains() + ground.looks(1)) {
            return true;
        }
        let anchor = ground.anchor(part, part, level);
        ground.domains_in(part, level, within).into_iter().filter(|&domain| anchor.allows(domain)).any(
            |domain| {
                !self.can_spend(ground.looks(2))
                    || self.are_children_met(part, &ground.within(part, level, domain, within))
            },
        )
    }

    fn are_children_met(&mut self, part: usize, region: &Region) -> bool {
        let asks = self.ground.part(part);
        let met = asks.children.iter().filter(|&&child| self.can_be_met(child, region)).count() as u32;
        met >= asks.minimum
    }

    /// False if so many new members of a group cannot be in a region.
    fn has_room(&mut self, group: usize, need: u32, within: &Region) -> bool {
        let ground = self.ground;
        if !self.can_spend(ground.cost_of_fit(group)) {
            return true;
        }
        let Some(level) = ground.part(group).required() else { return self.takes(group, need, within) };
        let anchor = ground.anchor(group, group, level);
        let fits = ground.fit_by_domain(group, level, within).into_iter().enumerate();
        let mut domains =
            fits.filter(|&(domain, fit)| fit >= u64::from(need) && anchor.allows(domain as u32));
        domains.any(|(domain, _)| {
            ground.part(group).slices.is_none()
                || !self.can_spend(ground.looks(2))
                || self.takes(group, need, &ground.within(group, level, domain as u32, within))
        })
    }

    /// The same if the level that is required is no matter any more.
    fn takes(&mut self, group: usize, need: u32, region: &Region) -> bool {
        let ground = self.ground;
        if !self.can_spend(ground.cost_of_fit(group)) {
            return true;
        }
        let (part, Some(hierarchy)) = (ground.part(group), ground.hierarchy(group)) else {
            return ground.fit(group, region) >= u64::from(need);
        };
        let Some(rule) = part.slices else { return ground.fit(group, region) >= u64::from(need) };
        // Nodes that are in no domain of the slices' level take nobody.
        let rooms = ground.fit_by_domain(group, rule.level, region);
        let is_uniform = |kind: &usize| {
            let belonging = ground.tree.kinds[*kind];
            belonging.slice.is_none() && !belonging.leads
        };
        match ground.kinds_of(group) {
            [kind] if is_uniform(kind) => {
                let wanted = ground.problem.kinds[*kind].count;
                if !self.can_spend(8 * (wanted as usize + rooms.len())) {
                    return true;
                }
                let slicing = Slicing::new(hierarchy, part, rule);
                let rooms = rooms.into_iter().enumerate().map(|(domain, room)| (domain as u32, room));
                slicing.most(&slicing.capacity(rooms), need, wanted).is_some()
            }
            _ => {
                let of_bin = ground.domains(group, rule.level).iter().zip(region);
                let inside: Region = of_bin.map(|(&domain, &inside)| inside && domain != NO_DOMAIN).collect();
                ground.fit(group, &inside) >= u64::from(need)
            }
        }
    }
}
