//! The term that a core acts in, where leaders are elected. A later one is another term: a leader in between may have
//! sent requests, which have to be waited for before anything is done in it.

use std::time::Instant;
use tokio::sync::watch;
use tutti_lease::Standing;

/// A term of ours.
#[derive(Debug, Clone)]
pub(super) struct Term {
    standing: watch::Receiver<Standing>,
    term: i32,
}

impl Term {
    pub(super) fn new(standing: watch::Receiver<Standing>, term: i32) -> Self {
        Self { standing, term }
    }

    /// Until when what is sent now must have ended; `None` if the term is over.
    pub(super) fn until(&self) -> Option<Instant> {
        match *self.standing.borrow() {
            Standing::Leading { until, term, .. } if term == self.term => Some(until),
            Standing::Leading { .. } | Standing::Following { .. } => None,
        }
    }

    /// Completes when a leader is elected or deposed, or the lease is renewed.
    pub(super) async fn changed(&mut self) {
        if self.standing.changed().await.is_err() {
            // The election has ended, and then nothing changes any more.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_over_when_another_one_has_begun_even_if_that_is_ours() {
        let until = Instant::now();
        let leading = |term| Standing::Leading { until, term, takeover: true };
        let (elect, standing) = watch::channel(leading(5));
        let term = Term::new(standing, 5);
        assert_eq!(term.until(), Some(until));
        elect.send_replace(leading(7));
        assert_eq!(term.until(), None);
        elect.send_replace(Standing::Following { leader: None });
        assert_eq!(term.until(), None);
    }
}
