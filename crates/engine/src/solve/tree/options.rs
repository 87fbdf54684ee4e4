//! The choices that a small tree leaves: which domains for whom, one step after the other.

use super::ground::{Ground, Region};
use super::objective::Merit;
use crate::rules::quota::Quota;
use crate::solve::request::{RunningMember, SliceRule};
use crate::state::hierarchy::{Cell, NO_DOMAIN};
use rustc_hash::FxHashMap;
use tutti_model::Strength;

/// What has been chosen so far.
pub(super) struct Place {
    /// By part: its bins, where that was chosen.
    regions: Vec<Option<Region>>,
    /// By part: the domain that keeps it away from its siblings.
    anti_affinity: Vec<Option<u32>>,
    /// By kind: bins of its slice.
    pub(super) masks: Vec<Option<Region>>,
    /// By part: how many members each domain takes, and where there are any slices.
    pub(super) quotas: Vec<Option<Quota>>,
    everywhere: Region,
}

/// One choice of a step.
pub(super) struct Choice {
    pub(super) merit: Merit,
    what: What,
}

enum What {
    /// A part goes to these bins, apart from its siblings in this domain.
    Region(usize, Region, Option<u32>),
    /// These kinds go to these bins.
    Mask(Vec<usize>, Region),
    /// A group's members are divided like this.
    Quota(usize, Quota),
}

impl Place {
    pub(super) fn new(ground: &Ground<'_>) -> Self {
        let parts = ground.tree.parts.len();
        Self {
            regions: vec![None; parts],
            anti_affinity: vec![None; parts],
            masks: vec![None; ground.tree.kinds.len()],
            quotas: (0..parts).map(|_| None).collect(),
            everywhere: vec![true; ground.problem.bins.len()],
        }
    }

    /// The bins that a part may use: its own or those of what it is part of.
    pub(super) fn region(&self, ground: &Ground<'_>, part: usize) -> &Region {
        let mut at = Some(part);
        while let Some(part) = at {
            if let Some(region) = &self.regions[part] {
                return region;
            }
            at = ground.part(part).parent;
        }
        &self.everywhere
    }

    /// Steps of the budget that it takes to look at the bins.
    pub(super) fn cost(&self, ground: &Ground<'_>) -> usize {
        4 * self.everywhere.len() * ground.tree.kinds.len()
    }

    pub(super) fn enter(&mut self, choice: &Choice) {
        match &choice.what {
            What::Region(part, region, anti_affinity) => {
                self.regions[*part] = Some(region.clone());
                self.anti_affinity[*part] = *anti_affinity;
            }
            What::Mask(kinds, region) => {
                for &kind in kinds {
                    self.masks[kind] = Some(region.clone());
                }
            }
            What::Quota(part, quota) => self.quotas[*part] = Some(quota.clone()),
        }
    }

    pub(super) fn leave(&mut self, choice: &Choice) {
        match &choice.what {
            What::Region(part, ..) => {
                self.regions[*part] = None;
                self.anti_affinity[*part] = None;
            }
            What::Mask(kinds, _) => {
                for &kind in kinds {
                    self.masks[kind] = None;
                }
            }
            What::Quota(part, _) => self.quotas[*part] = None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Part(usize),
    /// Where a slice goes that ranks tell.
    Slice(usize, SliceRule, u32),
    /// How members of any ranks are divided into slices.
    Cut(usize, SliceRule, u32),
    /// Which slice the leaders are with.
    Lead(usize, SliceRule),
}

/// All steps for one choice of how many members are placed.
pub(super) struct Steps<'s, 'g> {
    ground: &'s Ground<'g>,
    steps: Vec<Step>,
    /// By step: the best that could still come of it and all later ones.
    hopes: Vec<Merit>,
}

impl<'s, 'g> Steps<'s, 'g> {
    /// By part, how many members are placed, and how many of those do not lead.
    pub(super) fn new(ground: &'s Ground<'g>, placed: &[u32], workers: &[u32]) -> Self {
        let mut is_active: Vec<bool> = placed.iter().map(|&count| count > 0).collect();
        for at in (0..is_active.len()).rev() {
            if let Some(parent) = ground.part(at).parent {
                is_active[parent] |= is_active[at];
            }
        }
        let mut steps = Vec::new();
        for part in (0..is_active.len()).filter(|&part| is_active[part]) {
            steps.push(Step::Part(part));
            let Some(rule) = ground.part(part).slices else { continue };
            let mut slices: Vec<u32> =
                ground.kinds_of(part).iter().filter_map(|&kind| ground.tree.kinds[kind].slice).collect();
            slices.sort_unstable();
            slices.dedup();
            if slices.is_empty() {
                steps.push(Step::Cut(part, rule, workers[part]));
                if placed[part] > workers[part] {
                    steps.push(Step::Lead(part, rule));
                }
            }
            steps.extend(slices.into_iter().map(|slice| Step::Slice(part, rule, slice)));
        }
        let mut hopes = vec![Merit::default()];
        for step in steps.iter().rev() {
            let mut hope = Merit::default();
            let (Step::Part(part) | Step::Slice(part, ..) | Step::Cut(part, ..) | Step::Lead(part, _)) =
                *step;
            hope.pull = ground.part(part).running.len() as u32 * 2;
            if matches!(step, Step::Part(_)) {
                let levels = ground.part(part).levels.iter().enumerate();
                for (level, _) in levels.filter(|(_, strength)| **strength == Strength::Preferred) {
                    hope.meet(level);
                }
            }
            let later = hopes.last().cloned().unwrap_or_default();
            hopes.push(hope.and(&later));
        }
        hopes.reverse();
        Self { ground, steps, hopes }
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// The best that could come of this step and all later ones.
    pub(super) fn hope(&self, at: usize) -> &Merit {
        &self.hopes[at]
    }

    /// What can be chosen, the best first.
    pub(super) fn options(&self, at: usize, place: &Place) -> Vec<Choice> {
        let mut choices = match self.steps[at] {
            Step::Part(part) => self.part(part, place),
            Step::Slice(part, rule, slice) => self.slice(part, rule, slice, place),
            Step::Cut(part, rule, workers) => self.cut(part, rule, workers, place),
            Step::Lead(part, rule) => self.lead(part, rule, place),
        };
        choices.sort_by(|a, b| b.merit.cmp(&a.merit));
        choices
    }

    fn part(&self, part: usize, place: &Place) -> Vec<Choice> {
        let ground = self.ground;
        let within = place.region(ground, part).clone();
        let parent = ground.part(part).parent;
        let Some((parent, rule)) = parent.and_then(|at| Some((at, ground.part(at).spread?))) else {
            return self.inside(part, &within, None, &Merit::default());
        };
        let anchor = ground.anchor(part, parent, rule.level);
        let has_room = |&domain: &u32| {
            let siblings = ground.part(parent).children.iter().filter(|&&other| other != part);
            let there = |&&other: &&usize| {
                place.anti_affinity[other] == Some(domain)
                    || ground.anchor(other, parent, rule.level).members_in(domain) > 0
            };
            anchor.allows(domain) && (siblings.filter(there).count() as u32) < rule.most
        };
        let domains = ground.domains_in(parent, rule.level, &within).into_iter().filter(has_room);
        domains
            .flat_map(|domain| {
                let region = ground.within(parent, rule.level, domain, &within);
                let merit = Merit { pull: anchor.pull(domain), ..Merit::default() };
                self.inside(part, &region, Some(domain), &merit)
            })
            .collect()
    }

    /// What a part can choose within a region.
    fn inside(&self, part: usize, within: &Region, anti_affinity: Option<u32>, merit: &Merit) -> Vec<Choice> {
        let ground = self.ground;
        let choice = |region: Region, own: &Merit| Choice {
            merit: merit.and(own),
            what: What::Region(part, region, anti_affinity),
        };
        let required = ground.part(part).required();
        let Some(narrowest) = ground.part(part).narrowest() else {
            return vec![choice(within.clone(), &Merit::default())];
        };
        if ground.part(part).is_group {
            return self.cells(part, within, choice);
        }
        let mut choices = Vec::new();
        if required.is_none() {
            choices.push(choice(within.clone(), &Merit::default()));
        }
        for level in required.unwrap_or(0)..=narrowest {
            for domain in ground.domains_in(part, level, within) {
                if self.is_allowed(part, level, domain) {
                    let own = ground.merit_of_place(part, &[Cell { depth: level + 1, domain }]);
                    choices.push(choice(ground.within(part, level, domain, within), &own));
                }
            }
        }
        choices
    }

    /// Every set of cells that a group can be in.
    fn cells(&self, part: usize, within: &Region, choice: impl Fn(Region, &Merit) -> Choice) -> Vec<Choice> {
        let ground = self.ground;
        let cells = ground.cells(part, within);
        let Some(hierarchy) = ground.hierarchy(part) else { return Vec::new() };
        let required = ground.part(part).required();
        let mut choices = Vec::new();
        for set in 1..1_usize << cells.len() {
            let chosen: Vec<&(Cell, Region)> =
                cells.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1).map(|(_, cell)| cell).collect();
            let names: Vec<Cell> = chosen.iter().map(|(cell, _)| *cell).collect();
            if let Some(level) = required {
                let domain = hierarchy.above(names[0], level);
                let is_one = names.iter().all(|&cell| hierarchy.above(cell, level) == domain);
                if !is_one || !self.is_allowed(part, level, domain) {
                    continue;
                }
            }
            let bins = 0..within.len();
            let region = bins.map(|bin| chosen.iter().any(|(_, cell)| cell[bin])).collect();
            choices.push(choice(region, &ground.merit_of_cells(part, &names)));
        }
        choices
    }

    /// True if members that run allow a part to go to a domain of the narrowest required level, or of a narrower one.
    fn is_allowed(&self, part: usize, level: usize, domain: u32) -> bool {
        let (Some(required), Some(hierarchy)) =
            (self.ground.part(part).required(), self.ground.hierarchy(part))
        else {
            return true;
        };
        let domain = hierarchy.ancestor(level, domain, required);
        self.ground.anchor(part, part, required).allows(domain)
    }

    fn slice(&self, part: usize, rule: SliceRule, slice: u32, place: &Place) -> Vec<Choice> {
        let ground = self.ground;
        let within = place.region(ground, part);
        let anchor =
            ground.anchor_of(part, part, rule.level, |running: &RunningMember| running.slice == Some(slice));
        let of_slice = |&kind: &usize| ground.tree.kinds[kind].slice == Some(slice);
        let kinds: Vec<usize> = ground.kinds_of(part).iter().copied().filter(of_slice).collect();
        let domains = ground.domains_in(part, rule.level, within).into_iter();
        let choice = |domain: u32| Choice {
            merit: Merit { pull: anchor.pull(domain), ..Merit::default() },
            what: What::Mask(kinds.clone(), ground.within(part, rule.level, domain, within)),
        };
        let choices: Vec<Choice> = domains.filter(|&domain| anchor.allows(domain)).map(choice).collect();
        if !choices.is_empty() {
            return choices;
        }
        // There is no place for this slice, which says nothing about the others: nobody of it is placed.
        let nowhere = vec![false; within.len()];
        vec![Choice { merit: Merit::default(), what: What::Mask(kinds, nowhere) }]
    }

    /// Every way to hand out the slices that may be begun.
    fn cut(&self, part: usize, rule: SliceRule, workers: u32, place: &Place) -> Vec<Choice> {
        let ground = self.ground;
        let within = place.region(ground, part);
        let anchor = ground.anchor_of(part, part, rule.level, |running: &RunningMember| !running.leads);
        let homes: FxHashMap<u32, u32> = anchor.domains().collect();
        let slices_of = |members: u32| members.div_ceil(rule.size);
        let begun: u32 = homes.values().map(|&members| slices_of(members)).sum();
        let in_domains: u32 = homes.values().sum();
        let more = slices_of(in_domains + workers).saturating_sub(begun);
        let domain_of = ground.domains(part, rule.level);
        let mut domains = ground.domains_in(part, rule.level, within);
        domains.retain(|&domain| domain != NO_DOMAIN);
        let width = domain_of.iter().filter(|domain| **domain != NO_DOMAIN).max().map_or(0, |max| max + 1);
        let kinds: Vec<bool> = (0..ground.tree.kinds.len())
            .map(|kind| ground.tree.kinds[kind].part == part && !ground.tree.kinds[kind].leads)
            .collect();
        let quota = |extra: &[u32]| {
            let mut most = vec![0; width as usize];
            for (&domain, &extra) in domains.iter().zip(extra) {
                let members = homes.get(&domain).copied().unwrap_or(0);
                most[domain as usize] = (slices_of(members) + extra) * rule.size - members;
            }
            let quota = Quota { kinds: kinds.clone(), domain: domain_of.to_vec(), most };
            Choice { merit: Merit::default(), what: What::Quota(part, quota) }
        };
        compositions(more, domains.len()).iter().map(|extra| quota(extra)).collect()
    }

    /// Leaders are where there are members of a slice, or will be.
    fn lead(&self, part: usize, rule: SliceRule, place: &Place) -> Vec<Choice> {
        let ground = self.ground;
        let within = place.region(ground, part);
        let anchor = ground.anchor_of(part, part, rule.level, |running: &RunningMember| !running.leads);
        let is_begun = |&domain: &u32| {
            let takes = place.quotas[part].as_ref().is_some_and(|quota| quota.most[domain as usize] > 0);
            takes || anchor.members_in(domain) > 0
        };
        let kinds = ground.kinds_of(part).iter().copied();
        let kinds: Vec<usize> = kinds.filter(|&kind| ground.tree.kinds[kind].leads).collect();
        let domains = ground.domains_in(part, rule.level, within).into_iter().filter(is_begun);
        let choice = |domain| Choice {
            merit: Merit::default(),
            what: What::Mask(kinds.clone(), ground.within(part, rule.level, domain, within)),
        };
        domains.map(choice).collect()
    }
}

/// All ways to write a number as a sum of so many numbers.
fn compositions(number: u32, parts: usize) -> Vec<Vec<u32>> {
    match parts {
        0 if number == 0 => vec![Vec::new()],
        0 => Vec::new(),
        _ => (0..=number)
            .flat_map(|first| {
                let rest = compositions(number - first, parts - 1);
                rest.into_iter().map(move |rest| [vec![first], rest].concat())
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::compositions;

    #[test]
    fn every_sum_is_listed_once() {
        assert_eq!(compositions(2, 2), [[0, 2], [1, 1], [2, 0]]);
        assert_eq!(compositions(3, 3).len(), 10);
        assert!(compositions(1, 0).is_empty());
    }
}
