//! RESERVE: the offered resources become reserved for a role, one level deeper.

use tepui_proto::mesos::v1::offer::Operation;

use super::Deal;
use super::convert::{Result, convert};
use crate::master::{Master, Out};

pub(super) fn reserve(master: &mut Master, deal: &mut Deal, operation: Operation, out: &mut Out) {
    convert(master, deal, operation, Result::Usable, out);
}
