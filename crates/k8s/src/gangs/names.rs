//! Names of Workloads, templates and groups: they follow from the object they are for, so that whoever makes them
//! twice makes them once. They are those that Kubernetes' own Job controller gives, which therefore takes over what was
//! made here, and the other way round; where it would cut names so that they cannot be used, or not at all, they differ.

/// Longest name of an object.
const NAME_MAX: usize = 253;
/// Longest name of a template, which is a label.
const LABEL_MAX: usize = 63;
/// Letters of hashes: no vowels, so no words; no digits that look like letters.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The Workload of an object.
pub fn workload(name: &str, uid: &str) -> String {
    // Kubernetes hashes a print of the uid, which begins with its type.
    let hash = hash(&["(types.UID)", uid]);
    format!("{}-{hash}", cut(name, NAME_MAX - hash.len() - 1))
}

/// The template of one of its roles. Unlike the object's name it is a label: it has no dots, and is short.
pub(super) fn template(name: &str, role: usize) -> String {
    let suffix = format!("-pgt-{role}");
    let label = name.replace('.', "-");
    format!("{}{suffix}", cut(&label, LABEL_MAX - suffix.len()))
}

/// The group of a Job with this name and uid, unless it is made of somebody else's Workload.
pub fn of_job(name: &str, uid: &str) -> String {
    group(&workload(name, uid), &template(name, 0))
}

/// The group of a template.
pub fn group(workload: &str, template: &str) -> String {
    let hash = hash(&[workload, template]);
    // A template's name is short enough to always have its share.
    let room = NAME_MAX - hash.len() - 2 - template.len().min(LABEL_MAX);
    format!("{}-{template}-{hash}", cut(workload, room))
}

/// The beginning of a name, such that a dash can follow. Names that are not ours may have any letters.
fn cut(name: &str, room: usize) -> &str {
    let end = (0..=room.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    name[..end].trim_end_matches(['-', '.'])
}

/// FNV-1a, in letters.
fn hash(parts: &[&str]) -> String {
    let bytes = parts.iter().flat_map(|part| part.bytes());
    let sum = bytes.fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    encoded(&sum.to_string())
}

fn encoded(digits: &str) -> String {
    digits.bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_label(text: &str) -> bool {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        text.len() <= LABEL_MAX
            && text.starts_with(inner)
            && text.ends_with(inner)
            && text.chars().all(|c| inner(c) || c == '-')
    }

    #[test]
    fn long_and_dotted_names_give_valid_names() {
        let dots = format!("{}.{}", "a".repeat(55), "b.c".repeat(60));
        for name in
            ["train", "a.b.c", &"x".repeat(253), &dots, &"a-".repeat(126), &format!("{}.z", "y".repeat(241))]
        {
            let workload = workload(name, "5f8e6c1e-0000-4000-8000-000000000000");
            let template = template(name, 7);
            let group = group(&workload, &template);
            assert!(is_label(&template), "{template}");
            for full in [&workload, &group] {
                assert!(full.len() <= NAME_MAX, "{full}");
                assert!(full.split('.').all(|part| !part.is_empty() && !part.ends_with('-')), "{full}");
            }
        }
    }

    #[test]
    fn names_stay_the_same_and_differ_by_uid() {
        assert_eq!(workload("train", "u"), workload("train", "u"));
        let uid = "5f8e6c1e-0000-4000-8000-000000000000";
        assert_eq!(
            workload("train", uid),
            format!("train-{}", encoded("4094565642")),
            "as Kubernetes has it"
        );
        assert_eq!(of_job("train", "u"), group(&workload("train", "u"), "train-pgt-0"));
        assert_ne!(workload("train", "u"), workload("train", "v"));
        assert_eq!(template("train", 0), "train-pgt-0");
        assert!(group("train-x", "train-pgt-0").starts_with("train-x-train-pgt-0-"));
    }

    #[test]
    fn letters_of_several_bytes_are_not_cut_through() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("", 5), "");
    }
}
