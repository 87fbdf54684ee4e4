//! Requests under way. One task carries them all out: what arrives together is worked off together, while a task for each
//! would have to be woken, moved between threads and cleaned up for every single answer.

use super::send::Request;
use crate::core::message::Answer;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;

/// New requests that are taken in at once.
const TAKEN_MAX: usize = 128;

/// Requests under way. Dropped, they are given up.
#[derive(Debug)]
pub(super) struct Requests {
    // The core lets only so many requests out at a time: that bounds both queues.
    new: UnboundedSender<Request>,
    answers: UnboundedReceiver<Answer>,
    _task: JoinSet<()>,
}

impl Requests {
    pub(super) fn start() -> Self {
        let (new, taken) = mpsc::unbounded_channel();
        let (answer, answers) = mpsc::unbounded_channel();
        let mut task = JoinSet::new();
        // Polled without a budget: it comes to rest whenever no answer is in, and out of budget it would ask all
        // requests in vain.
        task.spawn(tokio::task::unconstrained(carry_out(taken, answer)));
        Self { new, answers, _task: task }
    }

    pub(super) fn send(&self, request: Request) {
        // Whether it is carried out shows where answers are waited for.
        let _ = self.new.send(request);
    }

    /// The next answer; `None` if there will not be any because a request broke.
    pub(super) async fn answer(&mut self) -> Option<Answer> {
        self.answers.recv().await
    }

    /// An answer that is there already.
    pub(super) fn answer_now(&mut self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }
}

async fn carry_out(mut new: UnboundedReceiver<Request>, answers: UnboundedSender<Answer>) {
    let mut under_way = FuturesUnordered::new();
    let mut taken = Vec::with_capacity(TAKEN_MAX);
    loop {
        tokio::select! {
            Some(answer) = under_way.next() => {
                if answers.send(answer).is_err() {
                    return;
                }
            }
            count = new.recv_many(&mut taken, TAKEN_MAX) => {
                if count == 0 {
                    return;
                }
                under_way.extend(taken.drain(..));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::message::{WriteKey, WriteOutcome};
    use tokio::sync::oneshot;
    use tutti_model::ObjectKey;

    /// A request, and what lets its answer come.
    fn request(name: &'static str) -> (Request, oneshot::Sender<()>) {
        let (finish, finished) = oneshot::channel();
        let request = Box::pin(async move {
            finished.await.expect("the caller waits for the answer");
            Answer::Write { key: WriteKey::Pod(ObjectKey::new("a", name)), outcome: WriteOutcome::Done }
        });
        (request, finish)
    }

    async fn answered(requests: &mut Requests) -> Option<String> {
        match requests.answer().await? {
            Answer::Write { key: WriteKey::Pod(pod), .. } => Some(pod.name.to_string()),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn answers_are_told_in_the_order_in_which_they_come() {
        let mut requests = Requests::start();
        let (slow, finish_slow) = request("slow");
        let (quick, finish_quick) = request("quick");
        requests.send(slow);
        requests.send(quick);
        assert!(requests.answer_now().is_none());
        finish_quick.send(()).expect("it is under way");
        assert_eq!(answered(&mut requests).await.as_deref(), Some("quick"));
        finish_slow.send(()).expect("it is under way");
        assert_eq!(answered(&mut requests).await.as_deref(), Some("slow"));
    }

    #[tokio::test]
    async fn more_than_is_taken_in_at_once_is_carried_out() {
        let mut requests = Requests::start();
        for _ in 0..5 * TAKEN_MAX {
            let (one, finish) = request("one");
            finish.send(()).expect("it has not begun");
            requests.send(one);
        }
        for _ in 0..5 * TAKEN_MAX {
            assert_eq!(answered(&mut requests).await.as_deref(), Some("one"));
        }
    }

    #[tokio::test]
    async fn when_a_request_breaks_nobody_waits_for_the_others() {
        let mut requests = Requests::start();
        let (waits, finish) = request("waits");
        requests.send(waits);
        requests.send(Box::pin(async { panic!("on purpose") }));
        assert_eq!(answered(&mut requests).await, None);
        assert!(finish.is_closed());
    }
}
