//! Lines of groups and composites.

use super::{key, number};
use crate::error::ModelError;
use crate::{Group, Level, Policy, Slices, Spread, Strength, Text, Time, WhenGated};

/// `group NAME gang=4 parent=job required:block preferred:rack slices:host:4 when-gated=start`.
pub(super) fn group(name: &str, words: &[&str], created: Time) -> Result<Group, ModelError> {
    read(name, words, created, |group, word, rest| {
        if let Some(asked) = word.strip_prefix("when-gated=") {
            group.when_gated = match asked {
                "hold" => WhenGated::Hold,
                "start" => WhenGated::Start,
                _ => return Err(ModelError::new(word, "want when-gated=hold or when-gated=start")),
            };
            return Ok(true);
        }
        let Some(("slices", text)) = rest else { return Ok(false) };
        let (key, size) = key_and_number(text, word, "want slices:TOPOLOGY-KEY:SIZE")?;
        group.topology.slices = Some(Slices { size, key });
        Ok(true)
    })
}

/// `composite NAME gang=2 parent=top required:block spread:zone:1`; a gang counts children.
pub(super) fn composite(name: &str, words: &[&str], created: Time) -> Result<Group, ModelError> {
    read(name, words, created, |group, word, rest| {
        let Some(("spread", text)) = rest else { return Ok(false) };
        let (key, most) = key_and_number(text, word, "want spread:TOPOLOGY-KEY:MOST")?;
        group.topology.spread = Some(Spread { key, most });
        Ok(true)
    })
}

/// Reads what groups and composites have in common; `own` reads the rest and tells whether it could.
fn read(
    name: &str,
    words: &[&str],
    created: Time,
    own: impl Fn(&mut Group, &str, Option<(&str, &str)>) -> Result<bool, ModelError>,
) -> Result<Group, ModelError> {
    let mut group = Group { created, ..Group::new(key(name), format!("uid-{name}")) };
    for &word in words {
        let mut level = |key: &str, strength| {
            group.topology.levels.push(Level { key: Text::from(key), strength });
        };
        match (word.split_once('='), word.split_once(':')) {
            (_, Some(("required", key))) => level(key, Strength::Required),
            (_, Some(("preferred", key))) => level(key, Strength::Preferred),
            (Some(("gang", minimum)), _) => group.policy = Policy::Gang { min_count: number(minimum, word)? },
            (Some(("priority", priority)), _) => group.priority = Some(number(priority, word)?),
            (Some(("parent", parent)), _) => group.parent = Some(key(parent)),
            (None, None) if word == "basic" => group.policy = Policy::Basic,
            (_, rest) if own(&mut group, word, rest)? => {}
            _ => {
                return Err(ModelError::new(
                    word,
                    "want basic, gang=N, priority=P, parent=NAME, required:KEY, preferred:KEY, slices:KEY:N or \
                     when-gated=start (of a group) or spread:KEY:N (of a composite)",
                ));
            }
        }
    }
    group.topology.check().map_err(|error| error.within(name))?;
    Ok(group)
}

/// `KEY:NUMBER`.
fn key_and_number<T: std::str::FromStr>(text: &str, word: &str, want: &str) -> Result<(Text, T), ModelError> {
    let (key, count) = text.rsplit_once(':').ok_or_else(|| ModelError::new(word, want))?;
    Ok((Text::from(key), number(count, word)?))
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;
    use crate::{Strength, Text};

    #[test]
    fn topology_and_composites_read_as_they_are_documented() {
        let scenario = Scenario::parse(
            "composite job gang=2 required:block spread:power:1
             group a parent=job gang=8 preferred:rack slices:host:4
             pod w x2 group=a ranked
             pod boss group=a leader
             pod late group=a rank=7",
        )
        .unwrap();
        let (job, a) = (&scenario.composites[0], &scenario.groups[0]);
        assert_eq!((job.policy.minimum(), a.parent.as_ref()), (2, Some(&job.key)));
        assert_eq!(job.topology.keys(), ["block", "power"].map(Text::from));
        assert_eq!(job.topology.levels[0].strength, Strength::Required);
        assert_eq!(a.topology.levels[0].strength, Strength::Preferred);
        assert_eq!(a.topology.slices.as_ref().map(|slices| slices.size.get()), Some(4));
        let ranks: Vec<_> = scenario.pods.iter().map(|pod| (pod.rank, pod.leader)).collect();
        assert_eq!(ranks, [(Some(0), false), (Some(1), false), (None, true), (Some(7), false)]);
    }

    #[test]
    fn an_error_names_the_word() {
        for (text, message) in [
            ("group g slices:rack", "line 1.slices:rack: want slices:TOPOLOGY-KEY:SIZE"),
            ("group g slices:rack:0", "line 1.slices:rack:0: \"0\" is not a number"),
            ("group g when-gated=run", "line 1.when-gated=run: want when-gated=hold or when-gated=start"),
            ("composite c when-gated=start", "line 1.when-gated=start: want basic"),
            ("group g spread:rack:1", "line 1.spread:rack:1: want basic"),
            ("composite c slices:rack:1", "line 1.slices:rack:1: want basic"),
            ("group g required:a preferred:a", "line 1.g.levels[1]: a is listed twice"),
        ] {
            let error = Scenario::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(message), "{text:?} gives {error:?}");
        }
    }
}
