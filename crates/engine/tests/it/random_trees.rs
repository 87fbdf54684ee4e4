//! Small random clusters with domains, and groups and composites that ask for some.

use crate::random::Dice;
use std::fmt::Write;

/// Levels from wide to narrow.
const LEVELS: [&str; 3] = ["block", "rack", "host"];

/// A node in one of two blocks and three racks; some lack a label. Racks of different blocks may share a name.
pub(crate) fn node(dice: &mut Dice, name: &str) -> String {
    let mut line = format!("node {name} cpu={} label:host={name}", dice.roll(1, 6));
    if !dice.once_in(10) {
        write!(line, " label:block={}", dice.roll(1, 2)).unwrap();
    }
    if !dice.once_in(10) {
        write!(line, " label:rack={}", dice.roll(1, 3)).unwrap();
    }
    if dice.once_in(12) {
        line.push_str(" cordoned");
    }
    line
}

/// Levels that a group or composite lists.
fn levels(dice: &mut Dice, odds_of_none: u64) -> String {
    let mut words = String::new();
    if dice.once_in(odds_of_none) {
        return words;
    }
    for level in LEVELS {
        match dice.roll(0, 4) {
            0 => write!(words, " required:{level}").unwrap(),
            1 | 2 => write!(words, " preferred:{level}").unwrap(),
            _ => {}
        }
    }
    words
}

/// What a group asks for: its minimum, levels, perhaps slices.
pub(crate) fn asks(dice: &mut Dice, minimum: u64) -> String {
    let mut words = format!("gang={minimum}{}", levels(dice, 5));
    if dice.once_in(4) {
        let level = LEVELS[dice.roll(1, 2) as usize];
        write!(words, " slices:{level}:{}", dice.roll(1, 3)).unwrap();
    }
    words
}

fn nodes(dice: &mut Dice, text: &mut String) -> u64 {
    let nodes = dice.roll(2, 5);
    for n in 0..nodes {
        writeln!(text, "{}", node(dice, &format!("n{n}"))).unwrap();
    }
    for r in 0..dice.roll(0, 2) {
        writeln!(text, "pod r{r} on=n{} cpu=1", dice.roll(0, nodes - 1)).unwrap();
    }
    nodes
}

/// Members of a group: some run already, some wait, perhaps with ranks, perhaps with a leader.
fn members(dice: &mut Dice, text: &mut String, group: &str, count: u64, nodes: u64) {
    let is_ranked = dice.once_in(3);
    let asks: Vec<u64> = (0..dice.roll(1, 2)).map(|_| dice.roll(1, 3)).collect();
    let has_kin = dice.once_in(4);
    for member in 0..count {
        let cpu = asks[dice.roll(0, asks.len() as u64 - 1) as usize];
        write!(text, "pod {group}-{member} group={group} cpu={cpu}").unwrap();
        if is_ranked {
            write!(text, " rank={member}").unwrap();
        }
        if member == 0 && dice.once_in(5) {
            text.push_str(" leader");
        }
        if has_kin && dice.once_in(3) {
            write!(text, " on=n{}", dice.roll(0, nodes - 1)).unwrap();
        }
        text.push('\n');
    }
}

/// One group of up to 6 members that asks something of the topology.
pub(crate) fn group_instance(seed: u64) -> String {
    let mut dice = Dice::new(seed + 2_000_000);
    let mut text = String::new();
    let nodes = nodes(&mut dice, &mut text);
    let count = dice.roll(1, 6);
    let minimum = if dice.once_in(2) { count } else { dice.roll(1, count) };
    writeln!(text, "group g {}", asks(&mut dice, minimum)).unwrap();
    members(&mut dice, &mut text, "g", count, nodes);
    text
}

/// A composite of two or three groups, perhaps with a composite in between, of up to 6 members in all.
pub(crate) fn composite_instance(seed: u64) -> String {
    let mut dice = Dice::new(seed + 3_000_000);
    let mut text = String::new();
    let nodes = nodes(&mut dice, &mut text);
    let groups = dice.roll(2, 3);
    let minimum = if dice.once_in(3) { "basic".to_owned() } else { format!("gang={}", dice.roll(1, groups)) };
    let spread = |dice: &mut Dice| match dice.roll(0, 4) {
        0 => format!(" spread:{}:1", LEVELS[dice.roll(0, 2) as usize]),
        1 => format!(" spread:{}:2", LEVELS[dice.roll(0, 1) as usize]),
        _ => String::new(),
    };
    let (top_levels, top_spread) = (levels(&mut dice, 2), spread(&mut dice));
    writeln!(text, "composite top {minimum}{top_levels}{top_spread}").unwrap();
    let has_middle = dice.once_in(4);
    if has_middle {
        writeln!(text, "composite middle parent=top gang=1{}", levels(&mut dice, 2)).unwrap();
    }
    for group in 0..groups {
        let name = format!("g{group}");
        let count = dice.roll(1, 2);
        let parent = if has_middle && dice.once_in(2) { "middle" } else { "top" };
        let beyond = u64::from(dice.once_in(8));
        let minimum = dice.roll(1, count + beyond);
        writeln!(text, "group {name} parent={parent} {}", asks(&mut dice, minimum)).unwrap();
        members(&mut dice, &mut text, &name, count, nodes);
    }
    text
}

/// One group of up to 4 members that asks something of the topology, and whose members have wishes about each other.
pub(crate) fn wishing_instance(seed: u64) -> String {
    let mut dice = Dice::new(seed + 4_000_000);
    let mut text = String::new();
    let nodes = nodes(&mut dice, &mut text);
    let count = dice.roll(1, 4);
    let minimum = dice.roll(1, count);
    writeln!(text, "group g {}", asks(&mut dice, minimum)).unwrap();
    let has_kin = dice.once_in(4);
    for member in 0..count {
        write!(text, "pod g-{member} group=g cpu=1 label:app={}", dice.roll(1, 2)).unwrap();
        match dice.roll(0, 4) {
            0 => write!(text, " affinity:rack:app={}", dice.roll(1, 2)).unwrap(),
            1 => write!(text, " anti-affinity:rack:app={}", dice.roll(1, 2)).unwrap(),
            2 => write!(text, " anti-affinity:host:app={}", dice.roll(1, 2)).unwrap(),
            3 => write!(text, " spread:rack:1:app={}", dice.roll(1, 2)).unwrap(),
            _ => text.push_str(" port:80"),
        }
        if has_kin && member == 0 {
            write!(text, " on=n{}", dice.roll(0, nodes - 1)).unwrap();
        }
        text.push('\n');
    }
    text
}
