//! How many members of each team are to be placed: all ways that give the tree what it needs, more members first.

use super::exact::Team;
use crate::solve::budget::Budget;
use crate::solve::request::Tree;

/// All ways, or nothing if there are more than `most` or the budget does not last.
pub(super) fn list(tree: &Tree, teams: &[Team], most: usize, budget: &mut Budget) -> Option<Vec<Vec<u32>>> {
    let mut ways = 1_usize;
    for team in teams {
        ways = ways.checked_mul(team.most as usize + 1).filter(|&ways| ways <= most)?;
    }
    if !budget.spend(ways * (64 + 8 * (tree.parts.len() + teams.len()))) {
        return None;
    }
    let mut targets: Vec<Vec<u32>> = (0..ways)
        .map(|mut number| {
            let digit = |team: &Team| {
                let base = team.most as usize + 1;
                let digit = number % base;
                number /= base;
                digit as u32
            };
            teams.iter().map(digit).collect()
        })
        .filter(|target: &Vec<u32>| is_sensible(tree, teams, target))
        .collect();
    targets.sort_by_cached_key(|target| std::cmp::Reverse((target.iter().sum::<u32>(), target.clone())));
    Some(targets)
}

/// True if somebody is placed, and nobody whose group, or what that is part of, lacks what it needs.
fn is_sensible(tree: &Tree, teams: &[Team], target: &[u32]) -> bool {
    let mut placed = vec![0; tree.parts.len()];
    for (team, count) in teams.iter().zip(target) {
        placed[team.part] += count;
    }
    let met = tree.met(&placed);
    let is_whole = |mut at: usize| loop {
        if !met[at] {
            return false;
        }
        match tree.parts[at].parent {
            Some(parent) => at = parent,
            None => return true,
        }
    };
    placed.iter().any(|&count| count > 0)
        && placed.iter().enumerate().all(|(part, &count)| count == 0 || is_whole(part))
}
