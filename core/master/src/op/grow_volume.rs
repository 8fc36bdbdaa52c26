//! GROW_VOLUME: a persistent volume gets more disk. What comes of it is offered again later.

use tepui_proto::mesos::v1::offer::Operation;

use super::Deal;
use super::convert::{Result, convert};
use crate::master::{Master, Out};

pub(super) fn grow_volume(master: &mut Master, deal: &mut Deal, operation: Operation, out: &mut Out) {
    convert(master, deal, operation, Result::SetAside, out);
}
