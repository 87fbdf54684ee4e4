use super::*;
use serde_json::json;

fn pods() -> ResourceId {
    ResourceId::find("", "v1", "pods").unwrap()
}

fn store(limits: Limits) -> MemoryStore {
    MemoryStore::new(limits, Arc::new(SystemEnvironment))
}

fn pod(namespace: &str, name: &str) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name}})
}

fn create(store: &MemoryStore, namespace: &str, name: &str) -> Arc<Object> {
    let change = Change::Create(pod(namespace, name).into());
    store.commit(Commit { id: pods(), key: Key::new(namespace, name), change, guard: None }).unwrap()
}

fn change(store: &MemoryStore, name: &str, change: Change) -> Result<Arc<Object>, CommitError> {
    store.commit(Commit { id: pods(), key: Key::new("a", name), change, guard: None })
}

fn names(page: &Page) -> Vec<String> {
    page.objects.iter().map(|o| o.key().name.to_string()).collect()
}

#[test]
fn every_write_has_its_own_revision_and_the_object_carries_it() {
    let store = store(Limits::default());
    let first = create(&store, "a", "x");
    let second = create(&store, "a", "y");
    assert_eq!(second.revision(), first.revision() + 1);
    assert_eq!(second.value()["metadata"]["resourceVersion"], second.revision().to_string());
    assert_eq!(store.revision(), second.revision());
}

#[test]
fn a_write_from_a_stale_read_is_refused() {
    let store = store(Limits::default());
    let expected = create(&store, "a", "x").revision();
    change(&store, "x", Change::Replace { expected, content: pod("a", "x").into() }).unwrap();
    let stale = change(&store, "x", Change::Replace { expected, content: pod("a", "x").into() });
    assert_eq!(stale.unwrap_err(), CommitError::Stale);
    let gone = change(&store, "z", Change::Remove { expected, last: pod("a", "z").into() });
    assert_eq!(gone.unwrap_err(), CommitError::Missing);
    assert_eq!(change(&store, "x", Change::Create(pod("a", "x").into())).unwrap_err(), CommitError::Exists);
}

#[test]
fn a_deletion_carries_its_own_revision() {
    let store = store(Limits::default());
    let created = create(&store, "a", "x");
    let last = Value::clone(&created.value());
    change(&store, "x", Change::Remove { expected: created.revision(), last: last.into() }).unwrap();
    let events = store.events(pods(), created.revision(), 10).unwrap().events;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].kind, EventKind::Deleted);
    assert_eq!(events[0].object.value()["metadata"]["resourceVersion"], store.revision().to_string());
    assert!(store.get(pods(), &Key::new("a", "x")).is_none());
}

#[test]
fn the_log_is_bounded_by_count_and_by_bytes_and_knows_its_floor() {
    let size = json_size(&pod("a", "00"));
    for limits in [
        Limits { events_max: 5, bytes_max: usize::MAX },
        Limits { events_max: usize::MAX, bytes_max: 5 * size },
    ] {
        let store = store(limits);
        let revisions: Vec<u64> = (10..30).map(|i| create(&store, "a", &i.to_string()).revision()).collect();
        let floor = revisions[14];
        assert_eq!(store.events(pods(), floor, 100).unwrap().events.len(), 5);
        let too_old = store.events(pods(), floor - 1, 100).unwrap_err();
        assert_eq!(too_old, TooOld { asked: floor - 1, floor });
        assert_eq!(too_old.to_string(), format!("too old resource version: {} ({floor})", floor - 1));
    }
}

#[test]
fn an_old_view_is_exactly_what_was() {
    let store = store(Limits::default());
    for name in ["b", "d", "f"] {
        create(&store, "a", name);
    }
    create(&store, "z", "other");
    let then = store.revision();
    let d = store.get(pods(), &Key::new("a", "d")).unwrap();
    change(&store, "d", Change::Remove { expected: d.revision(), last: pod("a", "d").into() }).unwrap();
    create(&store, "a", "c");
    let f = store.get(pods(), &Key::new("a", "f")).unwrap();
    change(&store, "f", Change::Replace { expected: f.revision(), content: pod("a", "f").into() }).unwrap();

    let range = Range { namespace: Some("a"), ..Range::default() };
    assert_eq!(names(&store.list(pods(), range)), ["b", "c", "f"]);
    let old = store.list_at(pods(), then, range).unwrap();
    assert_eq!(names(&old), ["b", "d", "f"]);
    assert!(old.objects.iter().all(|o| o.revision() <= then));
    let after = Key::new("a", "b");
    let range = Range { after: Some(&after), limit: Some(1), ..range };
    let part = store.list_at(pods(), then, range).unwrap();
    assert_eq!(names(&part), ["d"]);
    assert!(part.more);
}

#[test]
fn a_guard_is_checked_in_the_same_instant_as_the_write() {
    let store = store(Limits::default());
    let other = create(&store, "a", "guard");
    let guarded = |revision| Commit {
        id: pods(),
        key: Key::new("a", "x"),
        change: Change::Create(pod("a", "x").into()),
        guard: Some(Guard::Unchanged { id: pods(), key: Key::new("a", "guard"), revision }),
    };
    assert_eq!(store.check(&guarded(other.revision() + 1)), Err(CommitError::Guard));
    assert!(store.commit(guarded(other.revision())).is_ok());
    let empty = |namespace: &str| Commit {
        id: pods(),
        key: Key::new("q", "y"),
        change: Change::Create(pod("q", "y").into()),
        guard: Some(Guard::NamespaceEmpty(namespace.into())),
    };
    assert_eq!(store.check(&empty("a")), Err(CommitError::Guard));
    assert_eq!(store.check(&empty("b")), Ok(()));
}

#[tokio::test]
async fn a_subscriber_is_woken_by_its_resource_only() {
    let store = store(Limits::default());
    let nodes = ResourceId::find("", "v1", "nodes").unwrap();
    let (mut pods_changed, nodes_changed) = (store.subscribe(pods()), store.subscribe(nodes));
    create(&store, "a", "x");
    pods_changed.changed().await.unwrap();
    assert_eq!(*pods_changed.borrow_and_update(), store.revision());
    assert!(!nodes_changed.has_changed().unwrap());
}

#[test]
fn history_is_kept_as_json_and_reads_the_same() {
    let store = store(Limits::default());
    let first = create(&store, "a", "x");
    let before = Value::clone(&first.value());
    let mut expected = first.revision();
    // So many writes that the first version is no longer among the newest events.
    for _ in 0..5000 {
        let value = pod("a", "x");
        expected =
            change(&store, "x", Change::Replace { expected, content: value.into() }).unwrap().revision();
    }
    // Its parsed form lives only as long as somebody looks at it.
    let looked_at = Arc::downgrade(&first.value());
    assert!(looked_at.upgrade().is_none());
    let held = first.value();
    assert!(Arc::ptr_eq(&held, &first.value()), "readers at the same time share it");
    assert_eq!(*first.value(), before);
    assert_eq!(first.json("v1"), before.to_string().as_bytes());
    let present = Arc::downgrade(&store.get(pods(), &Key::new("a", "x")).unwrap().value());
    assert!(present.upgrade().is_some(), "what was just written stays parsed");
}

#[test]
fn large_objects_that_rest_are_kept_as_json_too_and_small_ones_are_not() {
    let store = store(Limits::default());
    let large = json!({"metadata": {"namespace": "a", "name": "large"}, "spec": {"x": "y".repeat(1000)}});
    change(&store, "large", Change::Create(large.into())).unwrap();
    create(&store, "a", "small");
    for i in 0..3000 {
        create(&store, "b", &format!("p{i}"));
    }
    let is_parsed = |name: &str| {
        let object = store.get(pods(), &Key::new("a", name)).unwrap();
        let value = Arc::downgrade(&object.value());
        value.upgrade().is_some()
    };
    assert!(!is_parsed("large"));
    assert!(is_parsed("small"));
}
