//! Requests from an iterator, run by a [`Batch`].

use super::{Batch, BatchOptions};
use crate::request::Request;
use crate::response::BufferedResponse;
use crate::{Client, Error, Result};

/// An iterator over the responses to many requests; made by [`Client::fetch_all`]. The requests
/// come from an iterator of the program. `FetchAll` takes requests from it in advance, so that
/// several are in progress while the program handles a response. When `FetchAll` is dropped, the
/// requests in progress are cancelled.
#[must_use = "it sends requests only while it is iterated"]
pub struct FetchAll<I> {
    requests: Option<I>,
    batch: Batch,
    ahead: usize,
}

impl<I: Iterator<Item = Request>> FetchAll<I> {
    pub(crate) fn new(client: &Client, requests: I, options: BatchOptions) -> Self {
        // Twice as many as may run: so that there is one for each slot, whatever its host, and some
        // order to wait for. Those that wait to be tried again come on top.
        let ahead = options.max_parallel.max(1).saturating_mul(2);
        Self { requests: Some(requests), batch: Batch::new(client, options), ahead }
    }

    fn submit_requests(&mut self) {
        while let Some(requests) = self.requests.as_mut().filter(|_| self.batch.has_room(self.ahead)) {
            match requests.next() {
                Some(request) => {
                    self.batch.submit(request);
                }
                None => self.requests = None,
            }
        }
    }
}

impl<I: Iterator<Item = Request>> Iterator for FetchAll<I> {
    /// The index of a request in the program's iterator, counted from 0, and the response to that
    /// request. If the interrupt callback ends the wait, its error is the last item. In a forked
    /// child, there are no items.
    type Item = (u64, Result<BufferedResponse>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.is_inherited() {
            return None;
        }
        loop {
            self.submit_requests();
            let ahead = self.requests.as_ref().map(|_| self.ahead);
            match self.batch.next_or_room(1, None, ahead).map(|mut taken| taken.pop()) {
                Ok(Some(finished)) => return Some((finished.id(), finished.into_reply())),
                // There is room for more.
                Ok(None) if ahead.is_some() => {}
                Ok(None) => return None,
                Err(error) => return Some(self.stop_with_error(error)),
            }
        }
    }
}

impl<I> FetchAll<I> {
    fn stop_with_error(&mut self, error: Error) -> (u64, Result<BufferedResponse>) {
        self.requests = None;
        self.batch.executor.close();
        let place = self.batch.queue.drop_ready_results();
        (place, Err(error))
    }
}
