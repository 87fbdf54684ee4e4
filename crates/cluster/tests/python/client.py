"""What Python's kubernetes client does with a cluster: list, create, watch, patch, apply, delete. Its one argument is
a kubeconfig. Prints "ok" at the end; anything unexpected raises."""

import sys

from kubernetes import client, config, watch

config.load_kube_config(config_file=sys.argv[1])
core = client.CoreV1Api()

nodes = core.list_node().items
assert [node.metadata.name for node in nodes] == ["node-0", "node-1"], nodes
assert client.VersionApi().get_code().major == "1"

pod = client.V1Pod(
    metadata=client.V1ObjectMeta(name="from-python", labels={"app": "python"}),
    spec=client.V1PodSpec(containers=[client.V1Container(name="main", image="any")]),
)
created = core.create_namespaced_pod("default", pod)
assert created.metadata.uid and created.spec.restart_policy == "Always", created

listed = core.list_namespaced_pod("default", label_selector="app=python", limit=1)
assert [item.metadata.name for item in listed.items] == ["from-python"], listed

patched = core.patch_namespaced_pod("from-python", "default", {"metadata": {"labels": {"patched": "yes"}}})
assert patched.metadata.labels == {"app": "python", "patched": "yes"}, patched

seen = []
events = watch.Watch()
for event in events.stream(
    core.list_namespaced_pod, "default", resource_version=listed.metadata.resource_version, timeout_seconds=30
):
    seen.append((event["type"], event["object"].metadata.labels.get("patched")))
    if event["type"] == "MODIFIED" and len(seen) == 1:
        core.delete_namespaced_pod("from-python", "default")
    if event["type"] == "DELETED":
        events.stop()
assert seen[0] == ("MODIFIED", "yes") and seen[-1][0] == "DELETED", seen

try:
    core.read_namespaced_pod("from-python", "default")
except client.ApiException as error:
    assert error.status == 404, error
else:
    raise AssertionError("a deleted pod was read")

custom = client.CustomObjectsApi()
group = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "gang"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
}
place = ("scheduling.k8s.io", "v1beta1", "default", "podgroups")
custom.create_namespaced_custom_object(*place, group)
assert len(custom.list_namespaced_custom_object(*place)["items"]) == 1
print("ok")
