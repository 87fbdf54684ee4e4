//! The choices that a small tree leaves: which domains for whom, one step after the other.

use super::ground::{Ground, Region};
use super::objective::Merit;
use super::slicing::Slicing;
use crate::rules::quota::Quota;
use crate::solve::budget::Budget;
use crate::solve::request::{RunningMember, SliceRule};
use crate::state::hierarchy::Cell;
use crate::state::shape::ShapeId;

/// Steps that it takes to tell what a choice is worth, beside looking at bins.
const STEPS_PER_MERIT: usize = 128;

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

    /// The bins that were chosen for a part, if that has been done.
    pub(super) fn chosen(&self, part: usize) -> Option<&Region> {
        self.regions[part].as_ref()
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
    /// How many of them choose domains for parts; slices come after these.
    parts: usize,
    /// By part: how many members are placed.
    placed: Vec<u32>,
    /// Only the widest choices are looked at: what others allow, they allow, too.
    is_loose: bool,
    /// By step: the best that could still come of it and all later ones. Not if only the widest choices are looked at.
    hopes: Vec<Merit>,
}

impl<'s, 'g> Steps<'s, 'g> {
    /// By part, how many members are placed, and how many of those do not lead.
    /// Nothing if the budget does not last.
    pub(super) fn new(
        ground: &'s Ground<'g>,
        placed: &[u32],
        workers: &[u32],
        is_loose: bool,
        budget: &mut Budget,
    ) -> Option<Self> {
        let mut is_active: Vec<bool> = placed.iter().map(|&count| count > 0).collect();
        for at in (0..is_active.len()).rev() {
            if let Some(parent) = ground.part(at).parent {
                is_active[parent] |= is_active[at];
            }
        }
        let mut steps: Vec<Step> =
            (0..is_active.len()).filter(|&part| is_active[part]).map(Step::Part).collect();
        let parts = steps.len();
        // Slices come last: where they go has little merit, and a choice of domains without any should end before it is
        // multiplied by all ways to cut it.
        for part in (0..is_active.len()).filter(|&part| is_active[part]) {
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
        let mut this = Self { ground, steps, parts, placed: placed.to_vec(), is_loose, hopes: Vec::new() };
        if is_loose {
            return Some(this);
        }
        let mut hopes = vec![Merit::default()];
        for step in this.steps.iter().rev() {
            let hope = match *step {
                Step::Part(part) => this.best_of_part(part, budget)?,
                Step::Slice(part, rule, slice) => {
                    let is_of_it = |running: &RunningMember| running.slice == Some(slice);
                    let anchor = ground.anchor_of(part, part, rule.level, is_of_it);
                    Merit { pull: anchor.most_pull(), ..Merit::default() }
                }
                Step::Cut(..) | Step::Lead(..) => Merit::default(),
            };
            let later = hopes.last().cloned().unwrap_or_default();
            hopes.push(hope.and(&later));
        }
        hopes.reverse();
        this.hopes = hopes;
        Some(this)
    }

    /// The best that a part could choose if everything were for it. Merits are compared in order and added, so that a sum
    /// of the best is never worse than any sum.
    fn best_of_part(&self, part: usize, budget: &mut Budget) -> Option<Merit> {
        let ground = self.ground;
        let choices = self.inside(part, &ground.everywhere(), None, &Merit::default(), budget)?;
        let own = choices.into_iter().map(|choice| choice.merit).max().unwrap_or_default();
        let parent = ground.part(part).parent.and_then(|at| Some((at, ground.part(at).spread?)));
        // Where members run whom the parent keeps apart from its other children.
        let pull = parent.map_or(0, |(at, rule)| ground.anchor(part, at, rule.level).most_pull());
        Some(own.and(&Merit { pull, ..Merit::default() }))
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// True if this is the first step about slices.
    pub(super) fn begins_slices(&self, at: usize) -> bool {
        at == self.parts && at < self.len()
    }

    /// The best that could come of this step and all later ones.
    pub(super) fn hope(&self, at: usize) -> &Merit {
        &self.hopes[at]
    }

    /// What can be chosen, the best first; nothing if the budget does not last.
    pub(super) fn options(&self, at: usize, place: &Place, budget: &mut Budget) -> Option<Options> {
        let mut choices = match self.steps[at] {
            Step::Part(part) => self.part(part, place, budget)?,
            Step::Slice(part, rule, slice) => self.slice(part, rule, slice, place, budget)?,
            Step::Cut(part, rule, workers) => {
                return Some(Options::Cuts(self.cuts(part, rule, workers, place, budget)?));
            }
            Step::Lead(part, rule) => self.lead(part, rule, place, budget)?,
        };
        choices.sort_by(|a, b| b.merit.cmp(&a.merit));
        Some(Options::Listed(choices.into_iter()))
    }

    fn part(&self, part: usize, place: &Place, budget: &mut Budget) -> Option<Vec<Choice>> {
        let ground = self.ground;
        if !budget.spend(ground.looks(1) + ground.cost_of_domains()) {
            return None;
        }
        let within = place.region(ground, part).clone();
        let parent = ground.part(part).parent;
        let Some((parent, rule)) = parent.and_then(|at| Some((at, ground.part(at).spread?))) else {
            return self.inside(part, &within, None, &Merit::default(), budget);
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
        let siblings = ground.part(parent).children.len() + ground.part(parent).running.len();
        let mut choices = Vec::new();
        for domain in ground.domains_in(parent, rule.level, &within) {
            if !budget.spend(ground.looks(1) + 32 * siblings) {
                return None;
            }
            if has_room(&domain) {
                let region = ground.within(parent, rule.level, domain, &within);
                let merit = Merit { pull: anchor.pull(domain), ..Merit::default() };
                choices.extend(self.inside(part, &region, Some(domain), &merit, budget)?);
            }
        }
        Some(choices)
    }

    /// What a part can choose within a region.
    fn inside(
        &self,
        part: usize,
        within: &Region,
        anti_affinity: Option<u32>,
        merit: &Merit,
        budget: &mut Budget,
    ) -> Option<Vec<Choice>> {
        let ground = self.ground;
        let choice = |region: Region, own: &Merit| Choice {
            merit: merit.and(own),
            what: What::Region(part, region, anti_affinity),
        };
        let required = ground.part(part).required();
        let Some(narrowest) = ground.part(part).narrowest() else {
            return Some(vec![choice(within.clone(), &Merit::default())]);
        };
        if ground.part(part).is_group {
            return self.cells(part, within, choice, budget);
        }
        let mut choices = Vec::new();
        if required.is_none() {
            choices.push(choice(within.clone(), &Merit::default()));
        }
        let last = if self.is_loose { required } else { Some(narrowest) };
        for level in last.map_or(0..0, |last| required.unwrap_or(0)..last + 1) {
            if !budget.spend(ground.cost_of_domains()) {
                return None;
            }
            for domain in ground.domains_in(part, level, within) {
                if !budget.spend(STEPS_PER_MERIT + ground.looks(1) + 8 * ground.part(part).running.len()) {
                    return None;
                }
                if self.is_allowed(part, level, domain) {
                    let own = ground.merit_of_place(part, &[Cell { depth: level + 1, domain }]);
                    choices.push(choice(ground.within(part, level, domain, within), &own));
                }
            }
        }
        Some(choices)
    }

    /// Every set of cells that a group can be in.
    fn cells(
        &self,
        part: usize,
        within: &Region,
        choice: impl Fn(Region, &Merit) -> Choice,
        budget: &mut Budget,
    ) -> Option<Vec<Choice>> {
        let ground = self.ground;
        let levels = ground.part(part).levels.len();
        if !budget.spend(ground.looks(8 + 4 * levels)) {
            return None;
        }
        let required = ground.part(part).required();
        let mut choices = Vec::new();
        if self.is_loose {
            let mut add = |region: Region| {
                if ground.fit(part, &region) >= u64::from(self.placed[part]) {
                    choices.push(choice(region, &Merit::default()));
                }
            };
            match required {
                None => add(within.clone()),
                Some(level) => {
                    let domains = ground.domains_in(part, level, within);
                    if !budget.spend(domains.len() * (STEPS_PER_MERIT + ground.looks(2))) {
                        return None;
                    }
                    for domain in domains.into_iter().filter(|&domain| self.is_allowed(part, level, domain)) {
                        add(ground.within(part, level, domain, within));
                    }
                }
            }
            return Some(choices);
        }
        let cells = ground.cells(part, within);
        let Some(hierarchy) = ground.hierarchy(part) else { return Some(Vec::new()) };
        let running = ground.part(part).running.len();
        let cost =
            STEPS_PER_MERIT + 8 * (1 + levels) * running + ground.looks(4 + 2 * cells.len() + 4 * levels);
        if cells.len() > 16 || !budget.spend((cost << cells.len()) + ground.cost_of_fullness(part)) {
            return None;
        }
        // A set of more cells than there are members has one that nobody goes to.
        let is_used = |set: &usize| set.count_ones() <= self.placed[part];
        for set in (1..1_usize << cells.len()).filter(is_used) {
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
            let region: Region = bins.map(|bin| chosen.iter().any(|(_, cell)| cell[bin])).collect();
            if ground.fit(part, &region) < u64::from(self.placed[part]) {
                continue;
            }
            choices.push(choice(region, &ground.merit_of_cells(part, &names)));
        }
        Some(choices)
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

    fn slice(
        &self,
        part: usize,
        rule: SliceRule,
        slice: u32,
        place: &Place,
        budget: &mut Budget,
    ) -> Option<Vec<Choice>> {
        let ground = self.ground;
        let slices = ground.kinds_of(part).len();
        let twins = slices * (slices + ground.part(part).running.len());
        if !budget.spend(ground.cost_of_domains() + 8 * (twins + ground.part(part).running.len())) {
            return None;
        }
        let within = place.region(ground, part);
        let anchor =
            ground.anchor_of(part, part, rule.level, |running: &RunningMember| running.slice == Some(slice));
        let kinds = self.kinds_of_slice(part, slice);
        let mut domains = ground.domains_in(part, rule.level, within);
        // Slices that are alike are interchangeable; so they take domains in ascending order.
        if let Some(twin) = self.twin(part, slice)
            && let Some(bin) =
                place.masks[twin].as_ref().and_then(|mask| mask.iter().position(|is_in| *is_in))
        {
            let taken = ground.domains(part, rule.level)[bin];
            let first = domains.iter().position(|&domain| domain == taken).unwrap_or(0);
            domains.drain(..first);
        }
        if !budget.spend(domains.len() * ground.looks(1)) {
            return None;
        }
        let domains = domains.into_iter();
        let choice = |domain: u32| Choice {
            merit: Merit { pull: anchor.pull(domain), ..Merit::default() },
            what: What::Mask(kinds.clone(), ground.within(part, rule.level, domain, within)),
        };
        let choices: Vec<Choice> = domains.filter(|&domain| anchor.allows(domain)).map(choice).collect();
        if !choices.is_empty() {
            return Some(choices);
        }
        // There is no place for this slice, which says nothing about the others: nobody of it is placed.
        let nowhere = vec![false; within.len()];
        Some(vec![Choice { merit: Merit::default(), what: What::Mask(kinds, nowhere) }])
    }

    fn kinds_of_slice(&self, part: usize, slice: u32) -> Vec<usize> {
        let of_slice = |&kind: &usize| self.ground.tree.kinds[kind].slice == Some(slice);
        self.ground.kinds_of(part).iter().copied().filter(of_slice).collect()
    }

    /// A kind of the last slice before this one that has the same members, if nobody of either runs.
    fn twin(&self, part: usize, slice: u32) -> Option<usize> {
        let ground = self.ground;
        let runs = |slice: u32| ground.part(part).running.iter().any(|running| running.slice == Some(slice));
        let members = |slice: u32| -> Vec<(ShapeId, u32)> {
            let kinds = self.kinds_of_slice(part, slice).into_iter().map(|kind| &ground.problem.kinds[kind]);
            let mut members: Vec<(ShapeId, u32)> = kinds.map(|kind| (kind.shape, kind.count)).collect();
            members.sort_unstable();
            members
        };
        let own = members(slice);
        let slices = ground.kinds_of(part).iter().filter_map(|&kind| ground.tree.kinds[kind].slice);
        let is_alike = |&other: &u32| other < slice && !runs(other) && members(other) == own;
        let twin = slices.filter(is_alike).max().filter(|_| !runs(slice))?;
        self.kinds_of_slice(part, twin).first().copied()
    }

    /// Every way to hand out the slices that may be begun.
    fn cuts(
        &self,
        part: usize,
        rule: SliceRule,
        workers: u32,
        place: &Place,
        budget: &mut Budget,
    ) -> Option<Cuts> {
        let ground = self.ground;
        if !budget.spend(ground.cost_of_domains() + ground.cost_of_fit(part) + ground.looks(2)) {
            return None;
        }
        let within = place.region(ground, part);
        let slicing = Slicing::new(ground.hierarchy(part)?, ground.part(part), rule);
        let domain_of = ground.domains(part, rule.level);
        let rooms = ground.fit_by_domain(part, rule.level, within);
        let domains = ground.domains_in(part, rule.level, within);
        let kinds: Vec<bool> = (0..ground.tree.kinds.len())
            .map(|kind| ground.tree.kinds[kind].part == part && !ground.tree.kinds[kind].leads)
            .collect();
        // Nobody begins more slices in a domain than there is room for.
        let most = |&domain: &u32| {
            let share = slicing.share(domain, rooms[domain as usize]);
            (share.whole + share.part.min(1)).min(u64::from(u32::MAX)) as u32
        };
        let most: Vec<u32> = domains.iter().map(most).collect();
        let in_all = most.iter().fold(0_u32, |sum, &most| sum.saturating_add(most));
        let extra = slicing.extra(u64::from(workers)).min(u64::from(in_all)) as u32;
        let missing = domains.iter().map(|&domain| slicing.missing(domain) as u32).collect();
        let quota = Quota { kinds, domain: domain_of.to_vec(), most: vec![0; rooms.len()] };
        Some(Cuts { part, size: rule.size, domains, missing, quota, divisions: Divisions::new(extra, most) })
    }

    /// Leaders are where there are members of a slice, or will be.
    fn lead(&self, part: usize, rule: SliceRule, place: &Place, budget: &mut Budget) -> Option<Vec<Choice>> {
        let ground = self.ground;
        if !budget.spend(ground.cost_of_domains() + 8 * ground.part(part).running.len()) {
            return None;
        }
        let within = place.region(ground, part);
        let anchor = ground.anchor_of(part, part, rule.level, |running: &RunningMember| !running.leads);
        let is_begun = |&domain: &u32| {
            let takes = place.quotas[part].as_ref().is_some_and(|quota| quota.most[domain as usize] > 0);
            takes || anchor.members_in(domain) > 0
        };
        let kinds = ground.kinds_of(part).iter().copied();
        let kinds: Vec<usize> = kinds.filter(|&kind| ground.tree.kinds[kind].leads).collect();
        let domains: Vec<u32> =
            ground.domains_in(part, rule.level, within).into_iter().filter(is_begun).collect();
        if !budget.spend(domains.len() * ground.looks(1)) {
            return None;
        }
        let choice = |domain| Choice {
            merit: Merit::default(),
            what: What::Mask(kinds.clone(), ground.within(part, rule.level, domain, within)),
        };
        Some(domains.into_iter().map(choice).collect())
    }
}

/// What can be chosen in a step.
pub(super) enum Options {
    Listed(std::vec::IntoIter<Choice>),
    Cuts(Cuts),
}

impl Options {
    /// Steps that it takes to make the next choice, unless all of them are listed already.
    pub(super) fn cost(&self) -> usize {
        match self {
            Self::Listed(_) => 0,
            Self::Cuts(cuts) => 8 * (cuts.quota.domain.len() + cuts.quota.most.len() + cuts.domains.len()),
        }
    }
}

impl Iterator for Options {
    type Item = Choice;

    fn next(&mut self) -> Option<Choice> {
        match self {
            Self::Listed(choices) => choices.next(),
            Self::Cuts(cuts) => cuts.next(),
        }
    }
}

/// Ways to divide members into slices, one after the other.
pub(super) struct Cuts {
    part: usize,
    size: u32,
    domains: Vec<u32>,
    /// By domain: seats that slices lack which have begun.
    missing: Vec<u32>,
    quota: Quota,
    divisions: Divisions,
}

impl Cuts {
    fn next(&mut self) -> Option<Choice> {
        let extra = self.divisions.next()?;
        let mut quota = self.quota.clone();
        for ((&domain, missing), extra) in self.domains.iter().zip(&self.missing).zip(extra) {
            quota.most[domain as usize] = missing.saturating_add(extra.saturating_mul(self.size));
        }
        Some(Choice { merit: Merit::default(), what: What::Quota(self.part, quota) })
    }
}

/// All ways to write a number as a sum of numbers of which each has its limit, in lexical order.
struct Divisions {
    most: Vec<u32>,
    next: Option<Vec<u32>>,
}

impl Divisions {
    fn new(number: u32, most: Vec<u32>) -> Self {
        let mut first = vec![0; most.len()];
        let is_done = fill(&mut first, &most, number);
        Self { most, next: is_done.then_some(first) }
    }

    fn next(&mut self) -> Option<Vec<u32>> {
        let current = self.next.take()?;
        // The last number that can grow because something behind it can shrink.
        let mut behind = 0_u32;
        for at in (0..current.len()).rev() {
            if behind > 0 && current[at] < self.most[at] {
                let mut next = current.clone();
                next[at] += 1;
                fill(&mut next[at + 1..], &self.most[at + 1..], behind - 1);
                self.next = Some(next);
                break;
            }
            behind += current[at];
        }
        Some(current)
    }
}

/// Makes the last of some numbers as large as they can be; false if their sum cannot be reached.
fn fill(numbers: &mut [u32], most: &[u32], sum: u32) -> bool {
    let mut left = sum;
    for (number, &most) in numbers.iter_mut().zip(most).rev() {
        *number = most.min(left);
        left -= *number;
    }
    left == 0
}

#[cfg(test)]
mod tests {
    use super::Divisions;

    fn all(number: u32, most: &[u32]) -> Vec<Vec<u32>> {
        let mut divisions = Divisions::new(number, most.to_vec());
        std::iter::from_fn(|| divisions.next()).collect()
    }

    #[test]
    fn every_sum_is_listed_once() {
        assert_eq!(all(2, &[9, 9]), [[0, 2], [1, 1], [2, 0]]);
        assert_eq!(all(3, &[9, 9, 9]).len(), 10);
        assert_eq!(all(3, &[1, 2, 1]), [[0, 2, 1], [1, 1, 1], [1, 2, 0]]);
        assert_eq!(all(0, &[]), [Vec::<u32>::new()]);
        assert!(all(1, &[]).is_empty());
        assert!(all(3, &[1, 1]).is_empty());
    }
}
