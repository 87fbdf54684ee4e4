//! Large trees by construction: from the top, each part into the tightest domain that will do, large children first.
//! Children that found no place come first in the next round. It may only place; what it does not find may exist.

use super::ground::{Ground, Region};
use crate::solve::Seats;
use crate::solve::budget::{Budget, DIVISION};
use crate::solve::request::SliceRule;
use crate::state::hierarchy::{Cell, NO_DOMAIN};
use std::cmp::Reverse;

/// Domains of a level that are tried for a part.
const TRIED_PER_LEVEL_MAX: usize = 8;
/// Cells of a group of which the fewest are looked for; with more, nodes are filled up wherever they are.
const CELLS_MAX: usize = 64;
/// Orders of children that are tried.
const ROUNDS_MAX: usize = 4;

/// Seats for the tree, if any are found.
pub(super) fn solve(ground: &Ground<'_>, budget: &mut Budget) -> Option<Seats> {
    if !ground.problem.constraints.is_empty() {
        return None;
    }
    let mut build = Build {
        ground,
        free: ground.problem.free.clone(),
        seats: Vec::new(),
        placed: vec![0; ground.tree.parts.len()],
        anti_affinity: vec![None; ground.tree.parts.len()],
        budget,
        is_over: false,
    };
    let everywhere: Region = vec![true; ground.problem.bins.len()];
    let is_done = build.place(0, &everywhere) && ground.tree.is_met(&build.placed);
    let seats = build.seats.iter().map(|&(kind, bin, count)| (kind, ground.problem.bins[bin], count));
    (is_done && !build.seats.is_empty()).then(|| seats.collect())
}

/// Members of some kinds that go to one domain.
type Chunk = Vec<(usize, u32)>;

struct Build<'b, 'g> {
    ground: &'b Ground<'g>,
    free: Vec<i64>,
    seats: Vec<(usize, usize, u32)>,
    /// By part: new members of a group.
    placed: Vec<u32>,
    /// By part: the domain that keeps it away from its siblings.
    anti_affinity: Vec<Option<u32>>,
    budget: &'b mut Budget,
    /// The budget has ended; from then on nothing is placed.
    is_over: bool,
}

impl Build<'_, '_> {
    fn can_spend(&mut self, steps: usize) -> bool {
        self.is_over |= !self.budget.spend(steps);
        !self.is_over
    }

    /// Steps that it takes to count the room for so many kinds in a region.
    fn cost_of_rooms(&self, kinds: usize, region: &Region) -> usize {
        let inside = region.iter().filter(|inside| **inside).count();
        self.ground.looks(2) + inside * kinds * (2 + DIVISION * self.ground.problem.resources.len())
    }

    /// Finds a place for a part, all of it if that is possible; false if it does not get what it needs.
    fn place(&mut self, part: usize, within: &Region) -> bool {
        let mark = self.seats.len();
        let (parent, rule) = match self.ground.part(part).parent {
            Some(parent) => (parent, self.ground.part(parent).spread),
            None => (0, None),
        };
        let Some(rule) = rule else { return self.place_inside(part, within) };
        let siblings = &self.ground.part(parent).children;
        let running = self.ground.part(parent).running.len();
        let per_domain = 32 * (siblings.len() + running);
        if !self.can_spend(self.ground.cost_of_domains()) {
            return false;
        }
        let few = self.ground.domains_in(parent, rule.level, within);
        if !self.can_spend(few.len() * per_domain) {
            return false;
        }
        let anchor = self.ground.anchor(part, parent, rule.level);
        let others = |domain: u32| {
            let there = |&&other: &&usize| {
                other != part
                    && (self.anti_affinity[other] == Some(domain)
                        || self.ground.anchor(other, parent, rule.level).members_in(domain) > 0)
            };
            siblings.iter().filter(there).count() as u32
        };
        let domains = few.into_iter();
        let mut domains: Vec<(Reverse<u32>, u32, u32)> = domains
            .filter(|&domain| anchor.allows(domain))
            .map(|domain| (Reverse(anchor.pull(domain)), others(domain), domain))
            .filter(|&(_, others, _)| others < rule.most)
            .collect();
        domains.sort_by_key(|&(pull, others, _)| (pull, others));
        for (.., domain) in domains.into_iter().take(TRIED_PER_LEVEL_MAX) {
            if !self.can_spend(self.ground.looks(1)) {
                break;
            }
            let region = self.ground.within(parent, rule.level, domain, within);
            self.anti_affinity[part] = Some(domain);
            if self.place_inside(part, &region) {
                return true;
            }
            self.undo(mark);
        }
        self.anti_affinity[part] = None;
        self.has_enough(part)
    }

    /// True if a part has what it needs as it is.
    fn has_enough(&self, part: usize) -> bool {
        self.ground.tree.met(&self.placed)[part]
    }

    fn place_inside(&mut self, part: usize, within: &Region) -> bool {
        let mark = self.seats.len();
        let mut kinds = Vec::new();
        self.gather_kinds(part, &mut kinds);
        self.keep_different(&mut kinds);
        let levels = 1 + self.ground.part(part).levels.len();
        let cost = levels * (self.ground.cost_of_domains() + self.ground.looks(2 + TRIED_PER_LEVEL_MAX))
            + self.ground.cost_of_fullness(part);
        if !self.can_spend(cost + self.cost_of_rooms(kinds.len(), within)) {
            return false;
        }
        let regions = self.regions(part, within);
        for region in &regions {
            if self.fill(part, region, true) {
                return true;
            }
            self.undo(mark);
        }
        if self.ground.part(part).is_group {
            // Not everybody: where most have room.
            let cost: usize = regions.iter().map(|region| self.cost_of_rooms(kinds.len(), region)).sum();
            if !self.can_spend(cost) {
                return false;
            }
            let mut by_room: Vec<(Reverse<u64>, usize)> = regions
                .iter()
                .enumerate()
                .map(|(at, region)| (Reverse(self.fit(part, region)), at))
                .collect();
            by_room.sort_unstable();
            for (_, at) in by_room.into_iter().take(TRIED_PER_LEVEL_MAX) {
                if self.fill(part, &regions[at], false) {
                    return true;
                }
                self.undo(mark);
            }
        }
        self.has_enough(part)
    }

    /// Where a part may go: domains of narrow levels first, tight ones before roomy ones.
    fn regions(&self, part: usize, within: &Region) -> Vec<Region> {
        let asks = self.ground.part(part);
        let Some(narrowest) = asks.narrowest() else { return vec![within.clone()] };
        let required = asks.required();
        let rooms = self.rooms(part, within);
        let mut regions = Vec::new();
        for level in (required.unwrap_or(0)..=narrowest).rev() {
            let anchor = self.ground.anchor(part, part, level);
            let of_bin = self.ground.domains(part, level);
            let mut sums: Vec<u64> = Vec::new();
            for (&domain, room) in of_bin.iter().zip(&rooms).filter(|(domain, _)| **domain != NO_DOMAIN) {
                sums.resize(sums.len().max(domain as usize + 1), 0);
                sums[domain as usize] += room;
            }
            let may_use = |&domain: &u32| {
                sums[domain as usize] > 0
                    && if required == Some(level) { anchor.allows(domain) } else { anchor.is_all_in(domain) }
            };
            let need = u64::from(asks.need());
            let mut domains: Vec<u32> =
                self.ground.domains_in(part, level, within).into_iter().filter(may_use).collect();
            domains.retain(|&domain| !asks.is_group || sums[domain as usize] >= need);
            domains.sort_by_cached_key(|&domain| {
                let full = self.ground.fullness(part, &[Cell { depth: level + 1, domain }]);
                (Reverse(anchor.pull(domain)), sums[domain as usize], Reverse(full))
            });
            // Those that cannot take everybody are of use only if none can.
            let wanted = self.wanted(part);
            let (roomy, tight): (Vec<u32>, Vec<u32>) =
                domains.into_iter().partition(|&domain| sums[domain as usize] >= wanted);
            let tight = tight.into_iter().rev().filter(|_| required == Some(level));
            let chosen = roomy.into_iter().take(TRIED_PER_LEVEL_MAX).chain(tight.take(1));
            regions.extend(chosen.map(|domain| self.ground.within(part, level, domain, within)));
        }
        if required.is_none() {
            regions.push(within.clone());
        }
        regions
    }

    /// Members of a part that want a seat.
    fn wanted(&self, part: usize) -> u64 {
        let own =
            self.ground.kinds_of(part).iter().map(|&kind| u64::from(self.ground.problem.kinds[kind].count));
        let children = self.ground.part(part).children.iter().map(|&child| self.wanted(child));
        own.chain(children).sum()
    }

    /// By bin: how many members of a part fit, those of the kind that fits least often; in whole slices if they must
    /// share a node's domain.
    fn rooms(&self, part: usize, within: &Region) -> Vec<u64> {
        let mut kinds = Vec::new();
        self.gather_kinds(part, &mut kinds);
        self.keep_different(&mut kinds);
        let room = |bin: usize| kinds.iter().map(|&kind| self.copies(kind, bin)).min().unwrap_or(0);
        (0..within.len()).map(|bin| if within[bin] { room(bin) } else { 0 }).collect()
    }

    /// Kinds of one shape fit alike, unless their groups are kept to different places.
    fn keep_different(&self, kinds: &mut Vec<usize>) {
        let ground = self.ground;
        let key = |kind: usize| {
            let part = ground.tree.kinds[kind].part;
            (
                ground.problem.kinds[kind].shape,
                Some(part).filter(|&part| !ground.part(part).fences.is_empty()),
            )
        };
        kinds.sort_by_key(|&kind| key(kind));
        kinds.dedup_by_key(|kind| key(*kind));
    }

    fn gather_kinds(&self, part: usize, kinds: &mut Vec<usize>) {
        kinds.extend_from_slice(self.ground.kinds_of(part));
        for &child in &self.ground.part(part).children {
            self.gather_kinds(child, kinds);
        }
    }

    fn fit(&self, part: usize, region: &Region) -> u64 {
        self.rooms(part, region).iter().sum()
    }

    fn copies(&self, kind: usize, bin: usize) -> u64 {
        if !self.ground.problem.is_allowed(kind, bin) {
            return 0;
        }
        let width = self.ground.problem.resources.len();
        self.ground.problem.copies(kind, &self.free[bin * width..(bin + 1) * width])
    }

    fn fill(&mut self, part: usize, region: &Region, everybody: bool) -> bool {
        if self.ground.part(part).is_group {
            return self.fill_group(part, region, everybody);
        }
        let mut children = self.ground.part(part).children.clone();
        children.sort_by_key(|&child| Reverse(self.wanted(child)));
        let mark = self.seats.len();
        for _ in 0..ROUNDS_MAX {
            for &child in &children {
                self.anti_affinity[child] = None;
            }
            let failed: Vec<usize> =
                children.iter().copied().filter(|&child| !self.place(child, region)).collect();
            if children.len() - failed.len() >= self.ground.part(part).minimum as usize {
                return true;
            }
            self.undo(mark);
            // Whoever found nothing comes first.
            children.sort_by_key(|child| !failed.contains(child));
        }
        false
    }

    fn fill_group(&mut self, part: usize, region: &Region, everybody: bool) -> bool {
        let mark = self.seats.len();
        let need = self.ground.part(part).need();
        let (chunks, level) = match self.ground.part(part).slices {
            Some(rule) => (self.slices(part, rule), rule.level),
            None => (vec![(self.everybody(part), None)], usize::MAX),
        };
        for (chunk, domain) in &chunks {
            let is_placed = match domain {
                _ if level == usize::MAX && everybody => self.spread_over_cells(part, chunk, region),
                _ if level == usize::MAX => self.put_some(chunk, region),
                Some(domain) => self.put(chunk, &self.ground.within(part, level, *domain, region)),
                None => self.put_in_tightest(part, level, chunk, region),
            };
            // A slice that has begun must be completed before others are.
            if !is_placed && (everybody || domain.is_some()) {
                return false;
            }
        }
        let placed: u32 = self.seats[mark..].iter().map(|&(.., count)| count).sum();
        placed >= need.max(u32::from(everybody && !self.ground.kinds_of(part).is_empty()))
    }

    fn everybody(&self, part: usize) -> Chunk {
        let kinds = self.ground.kinds_of(part).iter();
        let mut chunk: Chunk = kinds.map(|&kind| (kind, self.ground.problem.kinds[kind].count)).collect();
        chunk.sort_by_key(|&(kind, _)| Reverse(self.ground.problem.kinds[kind].share));
        chunk
    }

    /// The members of a group in slices, with the domain where one has begun.
    fn slices(&self, part: usize, rule: SliceRule) -> Vec<(Chunk, Option<u32>)> {
        let kinds = &self.ground.tree.kinds;
        let mut numbers: Vec<u32> =
            self.ground.kinds_of(part).iter().filter_map(|&kind| kinds[kind].slice).collect();
        numbers.sort_unstable();
        numbers.dedup();
        if !numbers.is_empty() {
            let chunk = |slice: u32| {
                let everybody = self.everybody(part).into_iter();
                let chunk = everybody.filter(|&(kind, _)| kinds[kind].slice == Some(slice)).collect();
                let anchor =
                    self.ground.anchor_of(part, part, rule.level, |running| running.slice == Some(slice));
                (
                    chunk,
                    anchor.domains().max_by_key(|&(domain, members)| (members, Reverse(domain))).map(|d| d.0),
                )
            };
            return numbers.into_iter().map(chunk).collect();
        }
        let (leaders, mut workers): (Chunk, Chunk) =
            self.everybody(part).into_iter().partition(|&(kind, _)| kinds[kind].leads);
        let mut chunks = Vec::new();
        let anchor = self.ground.anchor_of(part, part, rule.level, |running| !running.leads);
        let mut homes: Vec<(u32, u32)> = anchor.domains().collect();
        homes.sort_unstable();
        for (domain, members) in homes.into_iter().filter(|(_, members)| members % rule.size != 0) {
            chunks.push((draw(&mut workers, rule.size - members % rule.size), Some(domain)));
        }
        while !workers.is_empty() {
            chunks.push((draw(&mut workers, rule.size), None));
        }
        chunks.retain(|(chunk, _)| !chunk.is_empty());
        // Leaders need room beside a slice; so they join the smallest.
        let members = |chunk: &Chunk| chunk.iter().map(|&(_, count)| count).sum::<u32>();
        if let Some((smallest, _)) = chunks.iter_mut().min_by_key(|(chunk, _)| members(chunk)) {
            smallest.extend(leaders);
        }
        chunks
    }

    /// A chunk into the domain with the least room that takes it.
    fn put_in_tightest(&mut self, part: usize, level: usize, chunk: &Chunk, region: &Region) -> bool {
        if !self.can_spend(self.cost_of_rooms(2 * chunk.len(), region)) {
            return false;
        }
        let of_bin = self.ground.domains(part, level);
        let mut rooms: Vec<(u64, u32)> = Vec::new();
        let mut index: rustc_hash::FxHashMap<u32, usize> = rustc_hash::FxHashMap::default();
        for bin in (0..region.len()).filter(|&bin| region[bin] && of_bin[bin] != NO_DOMAIN) {
            let at = *index.entry(of_bin[bin]).or_insert_with(|| {
                rooms.push((0, of_bin[bin]));
                rooms.len() - 1
            });
            rooms[at].0 += chunk.iter().map(|&(kind, _)| self.copies(kind, bin)).min().unwrap_or(0);
        }
        let largest = chunk.iter().map(|&(_, count)| u64::from(count)).max().unwrap_or(0);
        rooms.retain(|&(room, _)| room >= largest);
        // Bins come by name, so that the first of equals is the same everywhere.
        rooms.sort_by_key(|&(room, _)| room);
        rooms.into_iter().take(TRIED_PER_LEVEL_MAX).any(|(_, domain)| {
            self.can_spend(self.ground.looks(1)) && {
                let inside = self.ground.within(part, level, domain, region);
                self.put(chunk, &inside)
            }
        })
    }

    /// Everybody into as few cells of the narrowest level as possible: the roomiest first.
    fn spread_over_cells(&mut self, part: usize, chunk: &Chunk, region: &Region) -> bool {
        let looks = self.ground.looks(16 * (1 + self.ground.part(part).levels.len()));
        let cost = looks + 2 * self.cost_of_rooms(chunk.len(), region);
        if !self.can_spend(cost) || !self.ground.has_few_cells(part, region, CELLS_MAX) {
            return self.put(chunk, region);
        }
        let mut cells = self.ground.cells(part, region);
        if cells.len() < 2 {
            return self.put(chunk, region);
        }
        cells.sort_by_key(|(_, cell)| Reverse(self.fit(part, cell)));
        let mut reached: Region = vec![false; region.len()];
        let wanted: u64 = chunk.iter().map(|&(_, count)| u64::from(count)).sum();
        let mut room = 0;
        for (_, cell) in cells {
            if !self.can_spend(self.ground.looks(4)) {
                break;
            }
            room += self.fit(part, &cell);
            reached.iter_mut().zip(&cell).for_each(|(reached, inside)| *reached |= inside);
            if room >= wanted && self.put(chunk, &reached) {
                return true;
            }
        }
        self.put(chunk, region)
    }

    /// All members of a chunk into a region, the fullest bins first; false, and nothing is changed, if they do not fit.
    fn put(&mut self, chunk: &Chunk, region: &Region) -> bool {
        let mark = self.seats.len();
        let is_put = self.put_some(chunk, region);
        if !is_put {
            self.undo(mark);
        }
        is_put
    }

    /// As many as fit; false if that is not everybody.
    fn put_some(&mut self, chunk: &Chunk, region: &Region) -> bool {
        let mut is_put = true;
        for &(kind, count) in chunk {
            if !self.can_spend(2 * self.cost_of_rooms(1, region)) {
                return false;
            }
            let bins = (0..region.len()).filter(|&bin| region[bin]);
            let mut bins: Vec<(u64, usize)> =
                bins.map(|bin| (self.copies(kind, bin), bin)).filter(|(copies, _)| *copies > 0).collect();
            bins.sort_unstable();
            let mut left = u64::from(count);
            for (copies, bin) in bins {
                let taken = copies.min(left);
                self.seat(kind, bin, taken as u32, 1);
                self.seats.push((kind, bin, taken as u32));
                left -= taken;
                if left == 0 {
                    break;
                }
            }
            is_put &= left == 0;
        }
        is_put
    }

    fn seat(&mut self, kind: usize, bin: usize, count: u32, sign: i64) {
        let width = self.ground.problem.resources.len();
        let row = &mut self.free[bin * width..(bin + 1) * width];
        for (free, demand) in row.iter_mut().zip(&self.ground.problem.kinds[kind].demand) {
            *free -= sign * demand * i64::from(count);
        }
        let placed = &mut self.placed[self.ground.tree.kinds[kind].part];
        *placed = placed.saturating_add_signed(sign as i32 * count as i32);
    }

    fn undo(&mut self, mark: usize) {
        while self.seats.len() > mark {
            if let Some((kind, bin, count)) = self.seats.pop() {
                self.seat(kind, bin, count, -1);
            }
        }
    }
}

/// Takes the first `count` members out.
fn draw(members: &mut Chunk, count: u32) -> Chunk {
    let mut left = count;
    let mut drawn = Chunk::new();
    while left > 0
        && let Some((kind, there)) = members.first_mut()
    {
        let taken = left.min(*there);
        drawn.push((*kind, taken));
        *there -= taken;
        left -= taken;
        if *there == 0 {
            members.remove(0);
        }
    }
    drawn
}
