//! The model of a worker's inbox.

use std::sync::Arc;

use loom::thread;

use crate::Registry;
use crate::worker_inbox::{WorkerInbox, WorkerMessage};

/// Runs a worker's loop until `count` messages have arrived.
fn receive(registry: &Registry, inbox: &WorkerInbox, count: usize) -> Vec<WorkerMessage> {
    let mut messages = Vec::new();
    loop {
        inbox.take_all(&mut messages);
        if messages.len() >= count {
            return messages;
        }
        if inbox.try_sleep() {
            registry.wait();
        }
    }
}

#[test]
fn inbox_delivers_each_message_to_a_worker_that_sleeps() {
    let mut model = loom::model::Builder::new();
    // Without a bound the four messages take hours.
    model.preemption_bound = Some(3);
    model.check(|| {
        let registry = Registry::default();
        let inbox = Arc::new(WorkerInbox::new(&registry, crate::Token(0)).unwrap());
        let senders = [1, 10].map(|first| {
            let inbox = Arc::clone(&inbox);
            thread::spawn(move || {
                inbox.send(WorkerMessage::Resume(first));
                inbox.send(WorkerMessage::Resume(first + 1));
            })
        });
        let messages = receive(&registry, &inbox, 4);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        for first in [1, 10] {
            let of_sender = |message: &&WorkerMessage| match message {
                WorkerMessage::Resume(number) => number / 10 == first / 10,
                _ => false,
            };
            let order: Vec<_> = messages.iter().filter(of_sender).collect();
            assert_eq!(order, [&WorkerMessage::Resume(first), &WorkerMessage::Resume(first + 1)]);
        }
    });
}
