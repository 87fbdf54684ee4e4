//! A thread for a watch that is told much and mostly nothing new.
//!
//! Thousands of kubelets report every few seconds that nothing has changed. Each report would wake a thread for a few
//! microseconds of work, and waking costs more than the work. This thread sleeps between looks, and reads what has come in
//! the meantime together; until then the kernel keeps it.
//!
//! It rests only while nothing is to be decided. Before a decision everything that has arrived is read, or pods would be
//! sent to nodes that are known to be closed.

use std::future::Future;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinSet;

/// How long it sleeps when it has nothing to do.
const REST: Duration = Duration::from_millis(20);
/// Rounds of reading until what has arrived is surely passed on: each one runs everything that can run and then asks the
/// kernel for more. One reads, one passes on what was read, and one is for what arrived meanwhile.
const READ_ROUNDS: usize = 3;

/// The thread. Dropped, it ends, and so does all that runs on it.
#[derive(Debug)]
pub(super) struct PacedThread {
    handle: Handle,
    /// There until it is dropped.
    runtime: Option<Runtime>,
    rest: Rest,
}

/// Whether the thread rests. At first it does not: a list of all nodes is waited for.
#[derive(Debug, Clone, Default)]
pub(super) struct Rest(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// What is watched is listed, and changes come.
    is_listed: bool,
    /// A unit is to be placed.
    is_wanted: bool,
}

impl State {
    fn may_rest(&self) -> bool {
        self.is_listed && !self.is_wanted
    }
}

impl Rest {
    /// What is watched is listed, or is being listed again.
    pub(super) fn set_listed(&self, is_listed: bool) {
        self.change(|state| state.is_listed = is_listed);
    }

    /// A unit is to be placed, or none is.
    fn set_wanted(&self, is_wanted: bool) {
        self.change(|state| state.is_wanted = is_wanted);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        // Nothing can panic while it is locked, so what is in it is whole.
        change(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.changed.notify_all();
    }

    /// Sleeps for a while, unless a unit is to be placed by then.
    fn take(&self) {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.may_rest() {
            drop(self.0.changed.wait_timeout_while(state, REST, |state| state.may_rest()));
        }
    }
}

/// Reads everything that has arrived for the thread.
#[derive(Debug, Clone)]
pub(super) struct Drain {
    handle: Handle,
    rest: Rest,
}

impl Drain {
    /// Waits until everything that had arrived when this was called is passed on.
    pub(super) async fn read_all(&self) {
        self.rest.set_wanted(true);
        let read = self.handle.spawn(async {
            for _ in 0..READ_ROUNDS {
                tokio::task::yield_now().await;
            }
        });
        // It fails only if the thread ends, and then there is nothing to be read.
        let _ = read.await;
    }

    /// Nobody is to be placed: the thread may rest.
    pub(super) fn rest(&self) {
        self.rest.set_wanted(false);
    }
}

impl PacedThread {
    pub(super) fn start() -> io::Result<Self> {
        let rest = Rest::default();
        let taken = rest.clone();
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("paced-watch")
            .enable_all()
            .on_thread_park(move || taken.take())
            .build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime), rest })
    }

    /// Runs a task there. Connections that it opens are read there too.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static, tasks: &mut JoinSet<()>) {
        tasks.spawn_on(task, &self.handle);
    }

    pub(super) fn resting(&self) -> Rest {
        self.rest.clone()
    }

    pub(super) fn drain(&self) -> Drain {
        Drain { handle: self.handle.clone(), rest: self.rest.clone() }
    }
}

impl Drop for PacedThread {
    fn drop(&mut self) {
        // Dropping it must not wait, and need not: its tasks only read.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::ThreadId;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::{mpsc, oneshot};

    #[tokio::test]
    async fn its_tasks_run_on_it_and_end_with_it() {
        let paced = PacedThread::start().unwrap();
        paced.resting().set_listed(true);
        let (tell, told) = oneshot::channel::<ThreadId>();
        let mut tasks = JoinSet::new();
        let task = async move {
            let _ = tell.send(std::thread::current().id());
            std::future::pending::<()>().await;
        };
        paced.spawn(task, &mut tasks);
        assert_ne!(told.await.unwrap(), std::thread::current().id());
        drop(paced);
        assert!(tasks.join_next().await.unwrap().unwrap_err().is_cancelled());
    }

    #[tokio::test]
    async fn what_has_arrived_is_read_before_a_decision_although_the_thread_rests() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let paced = PacedThread::start().unwrap();
        let (tell, mut told) = mpsc::channel::<u8>(8);
        let mut tasks = JoinSet::new();
        let watch = async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            while let Ok(byte) = stream.read_u8().await {
                // As a watch does, by another task that decodes.
                let tell = tell.clone();
                tokio::spawn(async move { tell.send(byte).await }).await.unwrap().unwrap();
            }
        };
        paced.spawn(watch, &mut tasks);
        let (mut server, _) = listener.accept().await.unwrap();
        server.set_nodelay(true).unwrap();
        paced.resting().set_listed(true);
        let drain = paced.drain();
        for byte in 0..100 {
            drain.rest();
            tokio::time::sleep(Duration::from_millis(3)).await;
            server.write_u8(byte).await.unwrap();
            server.flush().await.unwrap();
            drain.read_all().await;
            assert_eq!(told.try_recv(), Ok(byte), "it was there, and nobody had read it");
        }
    }
}
