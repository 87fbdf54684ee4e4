//! Clusters and trees that nobody would ask for in earnest: keys with typos, many levels, slices that do not come out
//! even, minimums beyond the members, hundreds of domains, deep composites. Whatever is asked, the answer comes soon and
//! does not contradict itself.

use crate::random::Dice;
use std::fmt::Write;

/// Keys that nodes may have, and some that no node has.
const KEYS: [&str; 9] =
    ["block", "rack", "host", "power", "cool", "blok", "rakc", "hsot", "kubernetes.io/rack"];
/// How many of them exist.
const KEYS_USED: usize = 5;

fn key(dice: &mut Dice) -> &'static str {
    // Mostly keys that exist.
    let last = if dice.once_in(5) { KEYS.len() } else { KEYS_USED };
    KEYS[dice.roll(0, last as u64 - 1) as usize]
}

fn nodes(dice: &mut Dice, text: &mut String) -> u64 {
    let count = match dice.roll(0, 9) {
        0 => dice.roll(200, 400),
        1..=3 => dice.roll(20, 60),
        _ => dice.roll(2, 8),
    };
    let (per_rack, per_block) = (dice.roll(1, 9), dice.roll(5, 40));
    let sizes = dice.roll(1, 4);
    for n in 0..count {
        write!(text, "node n{n:03} cpu={}", 2 * (1 + n % sizes)).unwrap();
        for (key, value) in [("host", n), ("rack", n / per_rack), ("block", n / per_block), ("power", n % 3)]
        {
            if !dice.once_in(30) {
                write!(text, " label:{key}={key}{value}").unwrap();
            }
        }
        if dice.once_in(2) {
            write!(text, " label:cool={}", dice.roll(1, 2)).unwrap();
        }
        text.push('\n');
    }
    for r in 0..dice.roll(0, 5) {
        writeln!(text, "pod r{r} on=n{:03} cpu=1", dice.roll(0, count - 1)).unwrap();
    }
    count
}

/// Levels, each once, in any order.
fn levels(dice: &mut Dice) -> String {
    let mut words = String::new();
    let mut seen = Vec::new();
    for _ in 0..dice.roll(0, 5) {
        let key = key(dice);
        if !seen.contains(&key) {
            seen.push(key);
            write!(words, " {}:{key}", if dice.once_in(3) { "required" } else { "preferred" }).unwrap();
        }
    }
    words
}

fn group(dice: &mut Dice, text: &mut String, name: &str, parent: &str, nodes: u64) {
    let count = if dice.once_in(4) { dice.roll(10, 70) } else { dice.roll(1, 8) };
    let minimum = if dice.once_in(6) { count + dice.roll(1, 9) } else { dice.roll(1, count) };
    write!(text, "group {name}{parent} gang={minimum}{}", levels(dice)).unwrap();
    if dice.once_in(2) {
        write!(text, " slices:{}:{}", key(dice), dice.roll(1, count + 1)).unwrap();
    }
    text.push('\n');
    let shapes: Vec<u64> = (0..dice.roll(1, 3)).map(|_| dice.roll(1, 4)).collect();
    let (is_ranked, has_leader, is_wishing) = (dice.once_in(3), dice.once_in(4), dice.once_in(6));
    for member in 0..count {
        let cpu = shapes[dice.roll(0, shapes.len() as u64 - 1) as usize];
        write!(text, "pod {name}-{member} group={name} cpu={cpu}").unwrap();
        if is_ranked {
            write!(text, " rank={member}").unwrap();
        }
        if has_leader && member == 0 {
            text.push_str(" leader");
        }
        if is_wishing {
            let what = if dice.once_in(2) { "affinity" } else { "anti-affinity" };
            write!(text, " label:app={name} {what}:{}:app={name}", key(dice)).unwrap();
        }
        if dice.once_in(12) {
            write!(text, " on=n{:03}", dice.roll(0, nodes - 1)).unwrap();
        }
        text.push('\n');
    }
}

/// A group, or a tree of groups.
pub(crate) fn hostile_instance(seed: u64) -> String {
    let mut dice = Dice::new(seed + 7_000_000);
    let dice = &mut dice;
    let mut text = String::new();
    let nodes = nodes(dice, &mut text);
    if dice.once_in(2) {
        group(dice, &mut text, "g", "", nodes);
        return text;
    }
    let mut composites: Vec<String> = Vec::new();
    for at in 0..dice.roll(1, 3) {
        let parent = match at {
            0 => String::new(),
            _ => format!(" parent={}", composites[dice.roll(0, at - 1) as usize]),
        };
        let spread = if dice.once_in(4) {
            format!(" spread:{}:{}", key(dice), dice.roll(1, 2))
        } else {
            String::new()
        };
        let minimum = if dice.once_in(3) { "basic".to_owned() } else { format!("gang={}", dice.roll(1, 4)) };
        writeln!(text, "composite c{at}{parent} {minimum}{}{spread}", levels(dice)).unwrap();
        composites.push(format!("c{at}"));
    }
    for at in 0..dice.roll(1, 9) {
        let parent = composites[dice.roll(0, composites.len() as u64 - 1) as usize].clone();
        group(dice, &mut text, &format!("g{at}"), &format!(" parent={parent}"), nodes);
    }
    text
}
