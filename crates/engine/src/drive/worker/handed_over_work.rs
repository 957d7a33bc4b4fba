//! Takes over transfers that other threads began.

use super::{HandedOverWork, Worker};
use crate::drive::connection::FinishedTransfers;
use crate::{Error, ErrorKind};

impl Worker {
    /// Continues the transfers that other threads have handed over.
    pub(super) fn take_handed_over_work(&mut self) {
        for work in self.scheduler.take_handed_over_work() {
            match work {
                HandedOverWork::Step(transfer, step) => self.handle_next_step(transfer, step, None),
                HandedOverWork::Connection(connection) => {
                    let Err(mut connection) = self.add_active_connection(connection) else { continue };
                    let mut finished = FinishedTransfers::new();
                    let error = Error::new(ErrorKind::Receive, "the event loop cannot watch the connection");
                    connection.abort(error, self.now, &mut finished);
                    self.totals.connection_closed(&connection);
                    for (transfer, step) in finished {
                        self.handle_next_step(transfer, step, None);
                    }
                }
            }
        }
    }
}
