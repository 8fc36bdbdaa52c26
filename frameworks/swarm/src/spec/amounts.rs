//! Requests and limits of a container, from the fields of `HostConfig`.
//!
//! | field | request | limit |
//! |---|---|---|
//! | `CpuShares` (`-c`) | whole cpus | |
//! | `NanoCpus` (`--cpus`) | if there are no shares | if there are shares, too |
//! | `MemoryReservation` | memory | |
//! | `Memory` (`-m`) | if there is no reservation | if there is a reservation, too |

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use serde_json::{Map, Value};
use tepui_resources::{Name, Quantities, Scalar};

use super::bad;
use crate::rejection::Rejection;

const NANOS_PER_THOUSANDTH: i64 = 1_000_000;
const MEBIBYTE: i64 = 1 << 20;
/// More cpus than this are a mistake, and their thousandths must not overflow.
const CPUS_MAX: i64 = 1 << 32;
/// What the kernel calls one processor's worth of shares.
const SHARES_PER_CPU: i64 = 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    pub cpus: Scalar,
    pub cpus_limit: Option<Scalar>,
    pub memory_bytes: i64,
    pub memory_limit_bytes: Option<i64>,
}

impl Amounts {
    pub fn parse(host: &Map<String, Value>) -> Result<Self, Rejection> {
        let shares = number(host, "CpuShares", CPUS_MAX)?;
        let nanos = number(host, "NanoCpus", i64::MAX)?;
        let reservation = number(host, "MemoryReservation", i64::MAX)?;
        let memory = number(host, "Memory", i64::MAX)?;
        if shares == 0 && nanos == 0 && reservation == 0 && memory == 0 {
            let text = "resources constraints (-c and/or -m) are required by mesos";
            return Err(Rejection::Failed(text.to_owned()));
        }
        let by_nanos = Scalar::from_thousandths(div_ceil(nanos, NANOS_PER_THOUSANDTH));
        let by_shares = Scalar::from_thousandths(shares * 1000);
        let (cpus, cpus_limit) = match (shares > 0, nanos > 0) {
            (true, true) if by_nanos < by_shares => {
                return Err(below("NanoCpus", &by_nanos, "CpuShares", &by_shares));
            }
            (true, true) => (by_shares, Some(by_nanos)),
            (true, false) => (by_shares, None),
            (false, _) => (by_nanos, None),
        };
        let (memory_bytes, memory_limit_bytes) = match (reservation > 0, memory > 0) {
            (true, true) if memory < reservation => {
                return Err(below("Memory", &memory, "MemoryReservation", &reservation));
            }
            (true, true) => (reservation, Some(memory)),
            (true, false) => (reservation, None),
            (false, _) => (memory, None),
        };
        Ok(Self { cpus, cpus_limit, memory_bytes, memory_limit_bytes })
    }

    /// The request as resources of a task; memory in MiB, rounded up to a thousandth.
    pub fn quantities(&self) -> Quantities {
        let mut amounts = Quantities::new();
        amounts.set(&Name::Cpus, self.cpus);
        amounts.set(&Name::Mem, mebibytes(self.memory_bytes));
        amounts
    }

    /// The limits of the task, where the user gave both a request and a limit.
    pub fn limits(&self) -> impl Iterator<Item = (Name, Scalar)> {
        let cpus = self.cpus_limit.map(|limit| (Name::Cpus, limit));
        let memory = self.memory_limit_bytes.map(|limit| (Name::Mem, mebibytes(limit)));
        cpus.into_iter().chain(memory)
    }

    /// Shares in the unit of the engine: clients count whole cpus.
    pub(super) fn write(&self, host: &mut Map<String, Value>) {
        if host.get("CpuShares").and_then(Value::as_i64).is_some_and(|shares| shares > 0) {
            let shares = self.cpus.thousandths() / 1000 * SHARES_PER_CPU;
            host.insert("CpuShares".to_owned(), Value::from(shares));
        }
    }
}

fn div_ceil(number: i64, divisor: i64) -> i64 {
    number / divisor + i64::from(number % divisor != 0)
}

fn mebibytes(bytes: i64) -> Scalar {
    let whole = (bytes / MEBIBYTE).min(i64::MAX / 2000) * 1000;
    Scalar::from_thousandths(whole + div_ceil(bytes % MEBIBYTE * 1000, MEBIBYTE))
}

fn number(host: &Map<String, Value>, field: &str, max: i64) -> Result<i64, Rejection> {
    let wrong =
        |what: String| bad(format!("HostConfig.{field} must be a number from 0 to {max}, not {what}"));
    match host.get(field) {
        None | Some(Value::Null) => Ok(0),
        Some(value) => match value.as_i64() {
            Some(number) if (0..=max).contains(&number) => Ok(number),
            Some(_) | None => Err(wrong(format!("{value}"))),
        },
    }
}

fn below(
    limit: &str,
    is: &dyn core::fmt::Display,
    request: &str,
    least: &dyn core::fmt::Display,
) -> Rejection {
    bad(format!(
        "HostConfig.{limit} is a limit of {is}, less than the request of {least} by HostConfig.{request}"
    ))
}
