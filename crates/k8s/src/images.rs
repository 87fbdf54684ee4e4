//! Images: which ones a pod is made of, which ones a node has. They only matter to where a pod starts sooner, so
//! what cannot be read is left out rather than reported.

use crate::lenient::{Lenient, Shape, Shaped};
use crate::pod_spec::PodSpecView;
use crate::selector::text;
use tutti_model::Text;
use tutti_model::image::{self, NodeImage};

/// One of a node's `status.images`.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ImageView {
    names: Lenient<Vec<Lenient<String>>>,
    size_bytes: Lenient<i64>,
}

macro_rules! objects {
    ($($name:ty),*) => { $(impl Shaped for $name { const SHAPE: Shape = Shape::Object; })* };
}
objects!(ImageView);

/// The images of a pod's containers, init containers and volumes, once for every use.
pub(crate) fn read_pod_images(spec: &PodSpecView) -> Vec<Text> {
    let containers = each(&spec.containers).chain(each(&spec.init_containers));
    let of_containers = containers.map(|container| &container.image);
    let of_volumes =
        each(&spec.volumes).filter_map(|volume| known(&volume.image).map(|image| &image.reference));
    of_containers
        .chain(of_volumes)
        .map(|name| image::full_name(text(name, "image").unwrap_or_default()))
        .collect()
}

/// The images of a node, under each of their names.
pub(crate) fn read_node_images(list: &Lenient<Vec<Lenient<ImageView>>>) -> Vec<NodeImage> {
    let images = each(list).flat_map(|view| {
        let size = known(&view.size_bytes).copied().unwrap_or(0).max(0);
        each(&view.names).map(move |name| NodeImage { name: Text::from(name.as_str()), size })
    });
    image::sorted(images.collect())
}

/// The elements of a list that have a readable shape.
fn each<T>(list: &Lenient<Vec<Lenient<T>>>) -> impl Iterator<Item = &T> {
    known(list).into_iter().flatten().filter_map(known)
}

fn known<T>(field: &Lenient<T>) -> Option<&T> {
    field.get().ok().flatten()
}

#[cfg(test)]
mod tests {
    use crate::{NodeView, PodView};
    use serde_json::json;

    #[test]
    fn a_pod_is_made_of_the_images_of_containers_init_containers_and_volumes() {
        let view: PodView = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "a", "uid": "u"},
            "spec": {"containers": [{"name": "c", "image": "app:v1"}, {"name": "d", "image": "app:v1"}],
                     "initContainers": [{"name": "i", "image": "registry:5000/setup"}],
                     "volumes": [{"name": "v", "image": {"reference": "data:v2"}}, {"name": "w", "emptyDir": {}}]},
        }))
        .unwrap();
        let reading = view.read();
        assert_eq!(reading.errors, []);
        let images: Vec<&str> = reading.pod.images.iter().map(AsRef::as_ref).collect();
        assert_eq!(images, ["app:v1", "app:v1", "registry:5000/setup:latest", "data:v2"]);
    }

    #[test]
    fn a_node_has_an_image_under_each_of_its_names_and_unreadable_ones_are_left_out() {
        let view: NodeView = serde_json::from_value(json!({
            "metadata": {"name": "n", "uid": "u"},
            "status": {"images": [{"names": ["b@sha256:1", "b:v1", 5], "sizeBytes": 1000}, "what",
                                  {"names": ["a:v1"], "sizeBytes": "large"}]},
        }))
        .unwrap();
        let reading = view.read();
        assert_eq!(reading.errors, []);
        assert!(!reading.node.unschedulable, "an odd image does not make a node unusable");
        let images = &reading.node.images;
        let images: Vec<(&str, i64)> = images.iter().map(|image| (image.name.as_ref(), image.size)).collect();
        assert_eq!(images, [("a:v1", 0), ("b:v1", 1000), ("b@sha256:1", 1000)]);
    }
}
