//! A thread for what is told often and is never urgent.
//!
//! Thousands of kubelets report every few seconds that nothing has changed. Each report would wake a thread for a few
//! microseconds of work, and waking costs more than the work. This thread sleeps between looks, and reads what has come in
//! the meantime together; until then the kernel keeps it.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinSet;

/// How long it sleeps when it has nothing to do. Nothing about nodes is so urgent that it could not wait for this long.
const REST: Duration = Duration::from_millis(20);

/// The thread. Dropped, it ends, and so does all that runs on it.
#[derive(Debug)]
pub(super) struct CalmThread {
    handle: Handle,
    /// There until it is dropped.
    runtime: Option<Runtime>,
    pace: Pace,
}

/// Whether the thread rests. At first it does not: a list of all nodes is waited for.
#[derive(Debug, Clone, Default)]
pub(super) struct Pace(Arc<AtomicBool>);

impl Pace {
    /// It rests from now on, or no longer.
    pub(super) fn rest(&self, rests: bool) {
        self.0.store(rests, Ordering::Relaxed);
    }

    fn keep(&self) {
        if self.0.load(Ordering::Relaxed) {
            std::thread::sleep(REST);
        }
    }
}

impl CalmThread {
    pub(super) fn start() -> io::Result<Self> {
        let pace = Pace::default();
        let kept = pace.clone();
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("calm")
            .enable_all()
            .on_thread_park(move || kept.keep())
            .build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime), pace })
    }

    /// Runs a task there. Connections that it opens are read there too.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static, tasks: &mut JoinSet<()>) {
        tasks.spawn_on(task, &self.handle);
    }

    pub(super) fn pace(&self) -> Pace {
        self.pace.clone()
    }
}

impl Drop for CalmThread {
    fn drop(&mut self) {
        // Whoever drops it must not wait, and need not: its tasks only read.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::ThreadId;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn its_tasks_run_on_it_and_end_with_it() {
        let calm = CalmThread::start().unwrap();
        calm.pace().rest(true);
        let (tell, told) = oneshot::channel::<ThreadId>();
        let mut tasks = JoinSet::new();
        let task = async move {
            let _ = tell.send(std::thread::current().id());
            std::future::pending::<()>().await;
        };
        calm.spawn(task, &mut tasks);
        assert_ne!(told.await.unwrap(), std::thread::current().id());
        drop(calm);
        assert!(tasks.join_next().await.unwrap().unwrap_err().is_cancelled());
    }
}
