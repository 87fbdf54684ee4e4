//! What no placement can do, told without searching: every group by itself, on everything that is free.

use super::ground::{Ground, Region};

/// True if it is certain that the tree cannot have what it needs.
pub(super) fn exclude(ground: &Ground<'_>) -> bool {
    let everywhere: Region = vec![true; ground.problem.bins.len()];
    let gains = |group: usize| {
        !ground.kinds_of(group).is_empty()
            && places_in(ground, group, &everywhere)
                .iter()
                .any(|region| slots(ground, group, region) >= u64::from(ground.part(group).need().max(1)))
    };
    !can_be_met(ground, 0, &everywhere) || !ground.tree.groups().any(gains)
}

/// The regions that a part could be in.
fn places_in(ground: &Ground<'_>, part: usize, within: &Region) -> Vec<Region> {
    let Some(level) = ground.part(part).required() else { return vec![within.clone()] };
    let anchor = ground.anchor(part, part, level);
    let domains = ground.domains_in(part, level, within).into_iter().filter(|&domain| anchor.allows(domain));
    domains.map(|domain| ground.within(part, level, domain, within)).collect()
}

/// False if a part cannot have what it needs in a region, even with nobody else around.
fn can_be_met(ground: &Ground<'_>, part: usize, within: &Region) -> bool {
    let has_enough = ground.part(part).is_group && ground.part(part).need() == 0;
    has_enough || places_in(ground, part, within).iter().any(|region| can_be_met_in(ground, part, region))
}

fn can_be_met_in(ground: &Ground<'_>, part: usize, region: &Region) -> bool {
    let asks = ground.part(part);
    if asks.is_group {
        return slots(ground, part, region) >= u64::from(asks.need());
    }
    let met = asks.children.iter().filter(|&&child| can_be_met(ground, child, region)).count() as u32;
    met >= asks.minimum
}

/// How many members of a group have a seat in a region at most.
fn slots(ground: &Ground<'_>, part: usize, region: &Region) -> u64 {
    let fit = ground.fit(part, region);
    let Some(rule) = ground.part(part).slices else { return fit };
    // Nodes that are in no domain of the slices' level take nobody.
    let of_bin = ground.domains(part, rule.level);
    let inside: Region = region
        .iter()
        .zip(of_bin)
        .map(|(inside, domain)| *inside && *domain != crate::state::hierarchy::NO_DOMAIN)
        .collect();
    let [kind] = ground.kinds_of(part) else { return ground.fit(part, &inside) };
    if !ground.part(part).running.is_empty() {
        return ground.fit(part, &inside);
    }
    // So many slices as the needed members ask for, each in a domain of its own or together with others.
    let domains = ground.domains_in(part, rule.level, region);
    let mut slices: Vec<u64> = Vec::new();
    let size = u64::from(rule.size);
    for domain in domains {
        let cell = ground.within(part, rule.level, domain, region);
        let bins = (0..cell.len()).filter(|&bin| cell[bin]);
        let room: u64 = bins.map(|bin| ground.problem.room_in(*kind, bin)).sum();
        let room = room.min(u64::from(ground.problem.kinds[*kind].count));
        slices.extend((0..room / size).map(|_| size).chain([room % size]));
    }
    slices.sort_unstable_by_key(|&members| std::cmp::Reverse(members));
    let wanted = u64::from(ground.problem.kinds[*kind].count);
    // The number of slices grows with that of members, so any number that can be placed is a sum of the largest.
    let can_place =
        |members: u64| slices.iter().take(members.div_ceil(size) as usize).sum::<u64>() >= members;
    let need = u64::from(ground.part(part).need());
    if (need..=wanted).any(can_place) { fit } else { need.saturating_sub(1).min(fit) }
}
