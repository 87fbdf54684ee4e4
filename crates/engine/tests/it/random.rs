//! Small random clusters. A tiny generator of our own: the same numbers on every machine, for ever.

use std::fmt::Write;

/// xorshift*; good enough to vary instances.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn roll(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.roll(1, n) == 1
    }
}

/// A node line.
pub(crate) fn node(dice: &mut Dice, name: &str) -> String {
    let mut line = format!("node {name} cpu={} memory={}Gi", dice.roll(1, 8), dice.roll(1, 8));
    if !dice.once_in(4) {
        write!(line, " label:zone={}", dice.roll(1, 2)).unwrap();
    }
    write!(line, " label:host={name}").unwrap();
    if dice.once_in(5) {
        line.push_str(" taint:gpu=yes:NoSchedule");
    }
    if dice.once_in(10) {
        line.push_str(" cordoned");
    }
    // By what was rolled already, so that the dice fall as they do without it.
    if line.contains("memory=1Gi") || line.contains("memory=2Gi") || line.contains("cpu=3") {
        line.push_str(" feature:F");
    }
    if dice.once_in(6) {
        write!(line, " pods={}", dice.roll(1, 3)).unwrap();
    }
    line
}

/// What a pod asks for.
pub(crate) fn requirements(dice: &mut Dice) -> String {
    let mut words = format!("cpu={} memory={}Gi", dice.roll(0, 5), dice.roll(0, 4));
    if dice.once_in(5) {
        write!(words, " select:zone={}", dice.roll(1, 2)).unwrap();
    }
    if dice.once_in(3) {
        words.push_str(" tolerate:gpu");
    }
    if words.contains("cpu=1 memory=1Gi") || words.contains("cpu=2 memory=2Gi") {
        words.push_str(" feature:F");
    }
    words
}

/// Labels, and what a pod wants of others; `odds` is how rare wishes are.
pub(crate) fn wishes(dice: &mut Dice, odds: u64) -> String {
    let mut words = String::new();
    if dice.once_in(2) {
        write!(words, " label:app={}", dice.roll(1, 2)).unwrap();
    }
    let key = |dice: &mut Dice| if dice.once_in(2) { "zone" } else { "host" };
    if dice.once_in(odds) {
        write!(words, " affinity:{}:app={}", key(dice), dice.roll(1, 2)).unwrap();
        if dice.once_in(4) {
            write!(words, " affinity:{}:app={}", key(dice), dice.roll(1, 2)).unwrap();
        }
    }
    if dice.once_in(odds) {
        write!(words, " anti-affinity:{}:app={}", key(dice), dice.roll(1, 2)).unwrap();
    }
    if dice.once_in(odds) {
        write!(words, " spread:{}:{}:app={}", key(dice), dice.roll(1, 2), dice.roll(1, 2)).unwrap();
        if dice.once_in(3) {
            write!(words, ":min={}", dice.roll(1, 3)).unwrap();
        }
    }
    if dice.once_in(2 * odds) {
        write!(words, " port:{}", dice.roll(80, 81)).unwrap();
    }
    words
}

/// As [`instance`], with wishes about other pods.
pub(crate) fn instance_with_wishes(seed: u64) -> String {
    let mut dice = Dice::new(seed + 1_000_000);
    let mut text = String::new();
    let nodes = dice.roll(1, 5);
    for n in 0..nodes {
        writeln!(text, "{}", node(&mut dice, &format!("n{n}"))).unwrap();
    }
    for r in 0..dice.roll(0, 4) {
        let on = dice.roll(0, nodes - 1);
        writeln!(text, "pod r{r} on=n{on} cpu={}{}", dice.roll(0, 1), wishes(&mut dice, 5)).unwrap();
    }
    let members = dice.roll(1, 7);
    let minimum = if dice.once_in(2) { members } else { dice.roll(1, members) };
    writeln!(text, "group g gang={minimum}").unwrap();
    let shape = |dice: &mut Dice| format!("cpu={}{}", dice.roll(0, 3), wishes(dice, 3));
    let shapes: Vec<String> = (0..dice.roll(1, 3)).map(|_| shape(&mut dice)).collect();
    for m in 0..members {
        let shape = &shapes[dice.roll(0, shapes.len() as u64 - 1) as usize];
        writeln!(text, "pod m{m} group=g {shape}").unwrap();
    }
    text
}

/// A cluster of up to 5 nodes with running pods, and one gang of up to 8 members and 4 shapes.
pub(crate) fn instance(seed: u64) -> String {
    let mut dice = Dice::new(seed);
    let mut text = String::new();
    let nodes = dice.roll(1, 5);
    for n in 0..nodes {
        writeln!(text, "{}", node(&mut dice, &format!("n{n}"))).unwrap();
    }
    for r in 0..dice.roll(0, 3) {
        let on = dice.roll(0, nodes - 1);
        writeln!(text, "pod r{r} on=n{on} {}", requirements(&mut dice)).unwrap();
    }
    let members = dice.roll(1, 8);
    let minimum = if dice.once_in(2) { members } else { dice.roll(1, members) };
    writeln!(text, "group g gang={minimum}").unwrap();
    let shapes: Vec<String> = (0..dice.roll(1, 4)).map(|_| requirements(&mut dice)).collect();
    for m in 0..members {
        let shape = &shapes[dice.roll(0, shapes.len() as u64 - 1) as usize];
        writeln!(text, "pod m{m} group=g {shape}").unwrap();
    }
    text
}
