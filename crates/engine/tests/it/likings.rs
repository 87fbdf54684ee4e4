//! Small random clusters in which nodes and pods are more or less welcome to each other.

use crate::random::{Dice, wishes};
use crate::reference::ZONE;
use std::fmt::Write;

/// A node line with what makes nodes more or less welcome.
pub(crate) fn node_with_liking(dice: &mut Dice, name: &str) -> String {
    let mut line = format!("node {name} cpu={} memory={}Gi", dice.roll(2, 16), dice.roll(2, 16));
    write!(line, " label:kubernetes.io/hostname={name}").unwrap();
    if !dice.once_in(5) {
        write!(line, " label:zone={}", dice.roll(1, 3)).unwrap();
    }
    // A label may be there and say nothing.
    match dice.roll(0, 5) {
        0 => {}
        1 => write!(line, " label:{ZONE}=").unwrap(),
        zone => write!(line, " label:{ZONE}={}", zone % 3).unwrap(),
    }
    if dice.once_in(2) {
        write!(line, " label:disk={}", dice.roll(1, 2)).unwrap();
    }
    for effect in ["PreferNoSchedule", "PreferNoSchedule", "NoSchedule"] {
        if dice.once_in(6) {
            write!(line, " taint:t{}=x:{effect}", dice.roll(1, 2)).unwrap();
        }
    }
    for image in 1..=2 {
        if dice.once_in(3) {
            write!(line, " image:app:v{image}={}Mi", 300 * dice.roll(1, 6)).unwrap();
        }
    }
    line
}

/// What a pod would like.
fn liking(dice: &mut Dice) -> String {
    let mut words = String::new();
    let key = |dice: &mut Dice| if dice.once_in(2) { "zone" } else { "kubernetes.io/hostname" };
    for _ in 0..dice.roll(0, 2) {
        match dice.roll(1, 8) {
            1 => write!(words, " prefer:disk={}:{}", dice.roll(1, 2), dice.roll(1, 9)).unwrap(),
            2 => write!(words, " prefer:zone={}:{}", dice.roll(1, 3), dice.roll(1, 9)).unwrap(),
            3 => {
                let (key, app) = (key(dice), dice.roll(1, 2));
                write!(words, " prefer-affinity:{key}:app={app}:{}", dice.roll(1, 100)).unwrap();
            }
            4 => {
                let (key, app) = (key(dice), dice.roll(1, 2));
                write!(words, " prefer-anti-affinity:{key}:app={app}:{}", dice.roll(1, 100)).unwrap();
            }
            5 => {
                let (key, skew) = (key(dice), dice.roll(1, 3));
                let selector =
                    if dice.once_in(5) { "*".to_owned() } else { format!("app={}", dice.roll(1, 2)) };
                write!(words, " prefer-spread:{key}:{skew}:{selector}").unwrap();
            }
            6 => write!(words, " like:app={}", dice.roll(1, 2)).unwrap(),
            7 => write!(words, " tolerate:t{}", dice.roll(1, 2)).unwrap(),
            _ => write!(words, " image:app:v{}", dice.roll(1, 2)).unwrap(),
        }
    }
    words
}

/// Nodes, running pods and pods on their own, with preferences of all kinds and some requirements.
pub(crate) fn instance_with_preferences(seed: u64) -> String {
    let mut dice = Dice::new(seed + 2_000_000);
    let mut text = String::new();
    let nodes = dice.roll(1, 6);
    for n in 0..nodes {
        writeln!(text, "{}", node_with_liking(&mut dice, &format!("n{n}"))).unwrap();
    }
    let pod = |dice: &mut Dice| {
        let mut words = String::new();
        for (resource, unit) in [("cpu", ""), ("memory", "Gi")] {
            if !dice.once_in(3) {
                write!(words, " {resource}={}{unit}", dice.roll(0, 3)).unwrap();
            }
        }
        words + &wishes(dice, 8).replace("host", "kubernetes.io/hostname") + &liking(dice)
    };
    for r in 0..dice.roll(0, 5) {
        let on = dice.roll(0, nodes - 1);
        let dying = if dice.once_in(6) { " terminating" } else { "" };
        writeln!(text, "pod r{r} on=n{on}{}{dying}", pod(&mut dice)).unwrap();
    }
    let shapes: Vec<String> = (0..dice.roll(1, 4)).map(|_| pod(&mut dice)).collect();
    for p in 0..dice.roll(1, 10) {
        let shape = &shapes[dice.roll(0, shapes.len() as u64 - 1) as usize];
        writeln!(text, "pod p{p} {shape}").unwrap();
    }
    text
}
