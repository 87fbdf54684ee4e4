//! The store against a model that is too simple to be wrong: a full copy of the state at every revision.

use super::*;
use proptest::prelude::*;
use serde_json::json;

type Snapshot = BTreeMap<(String, String), u64>;

#[derive(Debug, Clone)]
enum Step {
    Create(usize, usize),
    Change(usize, usize),
    Remove(usize, usize),
}

const NAMESPACES: [&str; 2] = ["a", "b"];
const NAMES: [&str; 4] = ["p", "q", "r", "s"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = || (0..NAMESPACES.len(), 0..NAMES.len());
    let step = prop_oneof![
        place().prop_map(|(namespace, name)| Step::Create(namespace, name)),
        place().prop_map(|(namespace, name)| Step::Change(namespace, name)),
        place().prop_map(|(namespace, name)| Step::Remove(namespace, name)),
    ];
    prop::collection::vec(step, 1..60)
}

fn pods() -> ResourceId {
    ResourceId::find("", "v1", "pods").unwrap()
}

fn snapshot(page: &Page) -> Snapshot {
    let key = |o: &Arc<Object>| (o.key().namespace.to_string(), o.key().name.to_string());
    page.objects.iter().map(|o| (key(o), o.revision())).collect()
}

/// Does a step if it can be done.
fn take(store: &MemoryStore, step: &Step) {
    let (Step::Create(namespace, name) | Step::Change(namespace, name) | Step::Remove(namespace, name)) =
        step;
    let key = Key::new(NAMESPACES[*namespace], NAMES[*name]);
    let value = json!({"metadata": {"name": &*key.name, "namespace": &*key.namespace}});
    let expected = store.get(pods(), &key).map(|o| o.revision());
    let change = match (step, expected) {
        (Step::Create(..), _) => Change::Create(value.into()),
        (Step::Change(..), Some(expected)) => Change::Replace { expected, content: value.into() },
        (Step::Remove(..), Some(expected)) => Change::Remove { expected, last: value.into() },
        (_, None) => return,
    };
    let commit = Commit { id: pods(), key, change, guard: None };
    // A create of what exists is refused, and must then leave no trace.
    let _ = store.commit(commit);
}

/// Applies events to a snapshot, as a client with a cache does.
fn replay(mut state: Snapshot, events: &[Arc<Event>]) -> Snapshot {
    for event in events {
        let key = event.object.key();
        let key = (key.namespace.to_string(), key.name.to_string());
        match event.kind {
            EventKind::Deleted => state.remove(&key),
            EventKind::Added | EventKind::Modified => state.insert(key, event.revision()),
        };
    }
    state
}

proptest! {
    #[test]
    fn every_past_state_can_be_read_and_leads_to_the_present(steps in steps(), limit in 1..5_usize) {
        let store = MemoryStore::new(Limits::default(), Arc::new(SystemEnvironment));
        let mut past: BTreeMap<u64, Snapshot> = BTreeMap::new();
        for step in &steps {
            past.insert(store.revision(), snapshot(&store.list(pods(), Range::default())));
            take(&store, step);
        }
        let present = snapshot(&store.list(pods(), Range::default()));
        for (revision, expected) in past {
            let page = store.list_at(pods(), revision, Range::default()).unwrap();
            prop_assert_eq!(&snapshot(&page), &expected);
            // In chunks it is the same state, and nothing comes twice.
            let (mut chunks, mut after) = (Vec::new(), None);
            loop {
                let range = Range { after: after.as_ref(), limit: Some(limit), ..Range::default() };
                let page = store.list_at(pods(), revision, range).unwrap();
                after = page.objects.last().map(|o| o.key().clone());
                chunks.extend(page.objects);
                if !page.more {
                    break;
                }
            }
            prop_assert_eq!(chunks.len(), expected.len());
            prop_assert!(chunks.is_sorted_by(|a, b| a.key() < b.key()));
            // A cache that began here and saw all events is the present.
            let events = store.events(pods(), revision, usize::MAX).unwrap();
            prop_assert!(events.events.is_sorted_by(|a, b| a.revision() < b.revision()));
            prop_assert_eq!(replay(expected, &events.events), present.clone());
        }
    }
}

#[test]
fn writers_on_many_threads_lose_nothing() {
    const WRITERS: usize = 4;
    const WRITES: usize = 500;
    let store = MemoryStore::new(Limits::default(), Arc::new(SystemEnvironment));
    let key = Key::new("a", "counter");
    let counter = |value: u64| json!({"metadata": {"name": "counter"}, "value": value});
    let create = Change::Create(counter(0).into());
    let commit = |change| Commit { id: pods(), key: key.clone(), change, guard: None };
    store.commit(commit(create)).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                let mut done = 0;
                while done < WRITES {
                    let object = store.get(pods(), &key).unwrap();
                    let value = object.value()["value"].as_u64().unwrap();
                    let change =
                        Change::Replace { expected: object.revision(), content: counter(value + 1).into() };
                    done += usize::from(store.commit(commit(change)).is_ok());
                }
            });
        }
    });
    let object = store.get(pods(), &key).unwrap();
    assert_eq!(object.value()["value"], (WRITERS * WRITES) as u64);
    let events = store.events(pods(), 1, usize::MAX).unwrap().events;
    assert_eq!(events.len(), WRITERS * WRITES + 1);
}
