//! Ends the wait for a stream of a connection whose server allows none.
//!
//! A server may announce that it accepts 0 concurrent streams (HTTP/2), or never allow another
//! stream (HTTP/3). If such a connection has served a request, another connection may serve the
//! next, so the waiting transfers move. If it has served none, they fail.

use super::Worker;
use crate::drive::connection::HttpConnection;
use crate::drive::connection_slot::ConnectionState;
use crate::transfer::ExchangeFailurePoint;
use crate::{Error, ErrorKind};

impl Worker {
    /// Moves or fails the transfers that have waited too long for a stream of the connection in
    /// slot `token`, and closes the connection.
    pub(super) fn end_stream_wait(&mut self, token: usize) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        let waiting = slot.take_without_stream(self.now);
        let ConnectionState::Open(connection) = &slot.state else { return };
        if waiting.is_empty() {
            return;
        }
        let has_served = connection.response_count() > 0;
        let kind = match **connection {
            HttpConnection::H1(_) | HttpConnection::H2(_) => ErrorKind::Http2,
            #[cfg(feature = "http3")]
            HttpConnection::H3(_) => ErrorKind::Http3,
        };
        self.remove(token);
        for mut transfer in waiting {
            if has_served {
                self.to_place.push_back((transfer, None));
                continue;
            }
            let error = Error::new(kind, "the server allows no stream on its connection");
            let after = transfer.on_failure(error, ExchangeFailurePoint::BeforeSending, self.now);
            self.handle_next_step(transfer, after, None);
        }
    }
}
