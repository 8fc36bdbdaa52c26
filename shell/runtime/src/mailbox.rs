//! The mailbox: the only way into a machine. Bounded; a sender waits while it is full.

use tokio::sync::mpsc;

/// The machine has terminated; inputs are no longer accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the state machine has terminated")]
pub struct Closed;

/// The sending end. A cheap clone.
#[derive(Debug)]
pub struct Handle<I> {
    sender: mpsc::Sender<I>,
}

/// The receiving end, for [`start`](crate::start).
#[derive(Debug)]
pub struct Mailbox<I> {
    pub(crate) receiver: mpsc::Receiver<I>,
}

/// A mailbox that holds at most `inputs_max`.
pub fn mailbox<I>(inputs_max: usize) -> (Handle<I>, Mailbox<I>) {
    let (sender, receiver) = mpsc::channel(inputs_max);
    (Handle { sender }, Mailbox { receiver })
}

impl<I> Handle<I> {
    /// Puts one input in, waiting for room. Inputs of one sender are taken in in its order.
    pub async fn send(&self, input: I) -> Result<(), Closed> {
        self.sender.send(input).await.map_err(|_| Closed)
    }

    /// Puts several inputs in, in their order, waiting for room. They are taken in together as far as the limits of a turn
    /// allow.
    pub async fn send_all(&self, inputs: Vec<I>) -> Result<(), Closed> {
        let mut inputs = inputs.into_iter();
        while inputs.len() > 0 {
            let count = inputs.len().min(self.sender.max_capacity());
            let places = self.sender.reserve_many(count).await.map_err(|_| Closed)?;
            places.zip(inputs.by_ref()).for_each(|(place, input)| place.send(input));
        }
        Ok(())
    }

    /// As `send`, from a thread that may block. Never from a sink: it would wait for itself.
    pub fn send_blocking(&self, input: I) -> Result<(), Closed> {
        self.sender.blocking_send(input).map_err(|_| Closed)
    }
}

impl<I> Handle<I> {
    /// How many inputs wait to be taken in.
    pub fn waiting(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }
}

impl<I> Mailbox<I> {
    /// Takes one input out, for tests that play the machine; none when all senders are dropped.
    pub async fn next(&mut self) -> Option<I> {
        self.receiver.recv().await
    }
}

impl<I> Clone for Handle<I> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone() }
    }
}
