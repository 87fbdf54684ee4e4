//! Sets of completion indexes as Jobs write them: `1,3-5,7`.

use std::fmt;

/// Indexes, as ranges that neither touch nor overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<(u32, u32)>);

impl Indexes {
    /// Reads what is below `end` of a list; what cannot be read is passed over.
    pub(super) fn parse(text: &str, end: u32) -> Self {
        let mut ranges: Vec<(u32, u32)> = text
            .split(',')
            .filter_map(|part| {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
                (first <= last && first < end).then(|| (first, last.min(end - 1)))
            })
            .collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(open) if first <= open.1.saturating_add(1) => open.1 = open.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    pub(super) fn contains(&self, index: u32) -> bool {
        let behind = self.0.partition_point(|(first, _)| *first <= index);
        behind > 0 && self.0[behind - 1].1 >= index
    }

    pub(super) fn insert(&mut self, index: u32) {
        if self.contains(index) {
            return;
        }
        let at = self.0.partition_point(|(first, _)| *first <= index);
        let joins_left = at > 0 && self.0[at - 1].1 + 1 == index;
        let joins_right = at < self.0.len() && self.0[at].0 == index + 1;
        match (joins_left, joins_right) {
            (true, true) => {
                self.0[at - 1].1 = self.0[at].1;
                self.0.remove(at);
            }
            (true, false) => self.0[at - 1].1 = index,
            (false, true) => self.0[at].0 = index,
            (false, false) => self.0.insert(at, (index, index)),
        }
    }

    /// How many are in both.
    pub(super) fn common(&self, other: &Self) -> u32 {
        let overlap = |(first, last): &(u32, u32)| {
            let from = other.0.partition_point(|(_, end)| end < first);
            let overlapping = other.0[from..].iter().take_while(|(start, _)| start <= last);
            overlapping.map(|(start, end)| end.min(last) - start.max(first) + 1).sum::<u32>()
        };
        self.0.iter().map(overlap).sum()
    }

    pub(super) fn len(&self) -> u32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (first, last)) in self.0.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn lists_are_read_and_written_as_jobs_write_them() {
        for (written, end, read) in [
            ("", 9, ""),
            ("1,3-5,7", 9, "1,3-5,7"),
            ("0,1", 9, "0,1"),
            ("0-1,2", 9, "0-2"),
            ("3-5,1", 5, "1,3,4"),
            ("0-4294967295", 3, "0-2"),
            ("x,2-1,-4,5", 9, "5"),
            ("7", 7, ""),
        ] {
            assert_eq!(Indexes::parse(written, end).to_string(), read, "{written}");
        }
    }

    #[test]
    fn any_order_of_insertions_gives_the_same_set() {
        let (mut seed, mut set, mut plain) = (7_u32, Indexes::default(), BTreeSet::new());
        for _ in 0..500 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let index = (seed >> 16) % 200;
            set.insert(index);
            plain.insert(index);
            assert_eq!(set.len() as usize, plain.len());
        }
        assert!((0..200).all(|index| set.contains(index) == plain.contains(&index)));
        assert_eq!(Indexes::parse(&set.to_string(), 200), set);
        let odd = Indexes::parse("3-20,40,50-199", 200);
        assert_eq!(odd.common(&set) as usize, plain.iter().filter(|index| odd.contains(**index)).count());
    }
}
