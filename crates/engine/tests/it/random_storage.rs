//! Random storage: classes of every sort, volumes near and far, claims that are bound, shared, exclusive or missing.

use crate::random::Dice;
use std::fmt::Write;

/// Classes that all instances have.
pub(crate) const CLASSES: &str = "\
class local wait
class made wait provisioner=d
class zonal wait provisioner=d allow:zone=1
class now provisioner=d
";

/// A node line.
pub(crate) fn node(dice: &mut Dice, name: &str) -> String {
    let mut line = format!("node {name} cpu={} label:host={name}", dice.roll(1, 6));
    if !dice.once_in(4) {
        write!(line, " label:zone={}", dice.roll(1, 2)).unwrap();
    }
    if dice.once_in(2) {
        write!(line, " attach:d={}", dice.roll(0, 3)).unwrap();
    }
    line
}

/// A volume line; what it is reached from, and perhaps what is attached for it.
pub(crate) fn volume(dice: &mut Dice, name: &str, class: &str) -> String {
    let mut line = format!("volume {name} class={class} size={}", dice.roll(1, 2));
    match dice.roll(0, 3) {
        0 => {}
        1 => write!(line, " reach:zone={}", dice.roll(1, 2)).unwrap(),
        _ => write!(line, " reach:host=n{}", dice.roll(0, 3)).unwrap(),
    }
    if dice.once_in(2) {
        write!(line, " disk:d=disk{}", dice.roll(0, 3)).unwrap();
    }
    line
}

/// Claim lines, one for each number, each with a volume of its own if it is bound.
pub(crate) fn claim(dice: &mut Dice, number: u64) -> String {
    let mode = if dice.once_in(3) { "RWOP" } else { "RWO" };
    match dice.roll(0, 9) {
        0..=3 => {
            let volume = volume(dice, &format!("own{number}"), "");
            format!("{volume} mode=RWO mode=RWOP\nclaim c{number} bound=own{number} mode={mode}\n")
        }
        4..=6 => format!("claim c{number} class=local size={} mode=RWO\n", dice.roll(1, 2)),
        7 => format!("claim c{number} class=made mode={mode}\n"),
        8 => format!("claim c{number} class=zonal size={}\n", dice.roll(1, 2)),
        _ if dice.once_in(3) => format!("claim c{number} class=now\n"),
        _ => format!("claim c{number} class=made selected=n{}\n", dice.roll(0, 2)),
    }
}

/// Words for the claims of a pod, out of this many.
pub(crate) fn uses(dice: &mut Dice, claims: u64) -> String {
    let mut words = String::new();
    for _ in 0..dice.roll(0, 2) {
        write!(words, " claim:c{}", dice.roll(0, claims)).unwrap();
    }
    words
}

/// A cluster of up to 4 nodes, and one gang of up to 5 members that have claims.
pub(crate) fn instance_with_volumes(seed: u64) -> String {
    let mut dice = Dice::new(seed + 2_000_000);
    let mut text = CLASSES.to_owned();
    let nodes = dice.roll(1, 4);
    for n in 0..nodes {
        writeln!(text, "{}", node(&mut dice, &format!("n{n}"))).unwrap();
    }
    for v in 0..dice.roll(0, 4) {
        let class = if dice.once_in(4) { "zonal" } else { "local" };
        writeln!(text, "{}", volume(&mut dice, &format!("v{v}"), class)).unwrap();
    }
    let claims = dice.roll(1, 5);
    // One less than may be named: now and then a claim is missing.
    for c in 0..=claims - u64::from(dice.once_in(8)) {
        text += &claim(&mut dice, c);
    }
    for r in 0..dice.roll(0, 2) {
        let on = dice.roll(0, nodes - 1);
        writeln!(text, "pod r{r} on=n{on} cpu={}{}", dice.roll(0, 1), uses(&mut dice, claims)).unwrap();
    }
    let members = dice.roll(1, 5);
    let minimum = if dice.once_in(2) { members } else { dice.roll(1, members) };
    writeln!(text, "group g gang={minimum}").unwrap();
    for m in 0..members {
        writeln!(text, "pod m{m} group=g cpu={}{}", dice.roll(0, 2), uses(&mut dice, claims)).unwrap();
    }
    text
}
