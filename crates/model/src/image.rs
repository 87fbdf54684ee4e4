//! Container images, as far as it matters where they are: a node that has one starts pods that need it sooner.

use crate::key::Text;

/// An image that a node has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeImage {
    /// One of its names; an image with several is listed under each.
    pub name: Text,
    /// Its size in bytes.
    pub size: i64,
}

/// The name under which a node lists the image that a pod names: with a tag, `latest` if the pod gives none.
pub fn full_name(name: &str) -> Text {
    // A colon before the last slash belongs to the port of a registry.
    let has_tag = name.rfind(':').is_some_and(|colon| name.rfind('/').is_none_or(|slash| slash < colon));
    if has_tag { Text::from(name) } else { Text::from(format!("{name}:latest")) }
}

/// Images of a node in one order: by name, each name once with its largest size.
pub fn sorted(mut images: Vec<NodeImage>) -> Vec<NodeImage> {
    images.sort_unstable();
    images.dedup_by(|later, earlier| {
        let is_same = later.name == earlier.name;
        if is_same {
            earlier.size = earlier.size.max(later.size);
        }
        is_same
    });
    images
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_tag_means_the_latest() {
        for (name, full) in [
            ("nginx", "nginx:latest"),
            ("nginx:1.29", "nginx:1.29"),
            ("registry:5000/team/app", "registry:5000/team/app:latest"),
            ("registry:5000/team/app:v1", "registry:5000/team/app:v1"),
            ("app@sha256:0123", "app@sha256:0123"),
            ("", ":latest"),
        ] {
            assert_eq!(full_name(name).as_ref(), full);
        }
    }

    #[test]
    fn an_image_that_is_listed_twice_counts_once_with_its_larger_size() {
        let image = |name: &str, size| NodeImage { name: name.into(), size };
        let images = sorted(vec![image("b", 1), image("a", 5), image("b", 3), image("b", 2)]);
        assert_eq!(images, [image("a", 5), image("b", 3)]);
    }
}
