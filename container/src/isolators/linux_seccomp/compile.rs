//! From a profile to a program for the kernel's filter machine.
//!
//! The first rule that a system call meets decides. Calls by the rules of another architecture are never let through:
//! their numbers mean something else.

use super::profile::{Action, Argument, Comparison, Condition, Profile, Rule};
use super::syscalls;
use crate::isolators::fault::SeccompFault;
use crate::plan::Filter;

/// What a machine has, as far as rules care.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    /// As profiles name it twice.
    pub architecture: &'static str,
    pub short_name: &'static str,
    /// As the kernel does.
    pub audit: u32,
    pub kernel: (u32, u32),
}

/// One instruction: code, jump if true, jump if false, operand.
type Instruction = (u16, u8, u8, u32);

/// The kernel takes no more.
const INSTRUCTIONS_MAX: usize = 4096;
/// How many names share one answer; a jump reaches no further than 255.
const NAMES_AT_ONCE: usize = 200;

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_MORE: u16 = 0x25;
const IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

/// Where the number of the call, the architecture and the arguments are.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// From here on x86 has another architecture in disguise.
const X32: u32 = 0x4000_0000;

/// Where a comparison goes.
#[derive(Clone, Copy)]
enum Goal {
    Next,
    /// The argument is as it should be.
    Pass,
    /// The rule does not hold.
    Fail,
}

pub(super) fn compile(
    profile: &Profile,
    machine: &Machine,
    capabilities: u64,
) -> Result<Filter, SeccompFault> {
    if !profile.is_for(machine.architecture) {
        return Err(SeccompFault::Architecture(machine.architecture));
    }
    let kill = answer(Action::KillProcess, None);
    let mut program = vec![
        (LOAD, 0, 0, ARCHITECTURE),
        (IF_EQUAL, 1, 0, machine.audit),
        (RETURN, 0, 0, kill),
        (LOAD, 0, 0, NUMBER),
    ];
    if cfg!(target_arch = "x86_64") {
        program.extend([(IF_AT_LEAST, 0, 1, X32), (RETURN, 0, 0, kill)]);
    }
    for rule in profile.syscalls.iter().filter(|rule| holds(rule, machine, capabilities)) {
        add(rule, &mut program);
    }
    program.push((RETURN, 0, 0, answer(profile.default_action, profile.default_errno_ret)));
    match program.len() {
        length if length > INSTRUCTIONS_MAX => Err(SeccompFault::TooLong { instructions: length }),
        _ => Ok(Filter(program)),
    }
}

/// System calls that this machine does not have can never be made.
fn add(rule: &Rule, program: &mut Vec<Instruction>) {
    let numbers: Vec<u32> = rule.names().filter_map(|name| syscalls::number(name)).collect();
    let answer = answer(rule.action, rule.errno_ret);
    if rule.args.is_empty() {
        for some in numbers.chunks(NAMES_AT_ONCE) {
            let last = some.len();
            let jump = |(index, number): (usize, &u32)| (IF_EQUAL, (last - index) as u8, 0, *number);
            program.extend(some.iter().enumerate().map(jump));
            program.extend([(JUMP, 0, 0, 1), (RETURN, 0, 0, answer)]);
        }
        return;
    }
    let body = with_arguments(&rule.args, answer);
    for number in numbers {
        program.push((IF_EQUAL, 0, body.len() as u8, number));
        program.extend(&body);
    }
}

/// Returns the action if all arguments match; otherwise continues behind, with the number loaded again.
fn with_arguments(arguments: &[Argument], answer: u32) -> Vec<Instruction> {
    let parts: Vec<Vec<(u16, Goal, Goal, u32)>> = arguments.iter().map(compare).collect();
    let length = parts.iter().map(Vec::len).sum::<usize>() + 1;
    let (mut body, mut end) = (Vec::new(), 0);
    for part in parts {
        end += part.len();
        for (code, yes, no, operand) in part {
            let here = body.len() + 1;
            let way = |goal| match goal {
                Goal::Next => 0,
                Goal::Pass => (end - here) as u8,
                Goal::Fail => (length - here) as u8,
            };
            body.push((code, way(yes), way(no), operand));
        }
    }
    body.extend([(RETURN, 0, 0, answer), (LOAD, 0, 0, NUMBER)]);
    body
}

/// Arguments have 64 bits, the machine 32: first the upper half, then the lower.
fn compare(argument: &Argument) -> Vec<(u16, Goal, Goal, u32)> {
    use Goal::{Fail, Next, Pass};
    let halves = |value: u64| ((value >> 32) as u32, value as u32);
    let place = ARGUMENTS + 8 * u32::from(argument.index);
    let (low_at, high_at) =
        if cfg!(target_endian = "little") { (place, place + 4) } else { (place + 4, place) };
    let load = |at| (LOAD, Next, Next, at);
    let (high, low) = halves(argument.value);
    let ordered = |above, below, last: (u16, Goal, Goal)| {
        let (code, yes, no) = last;
        vec![
            load(high_at),
            (IF_MORE, above, Next, high),
            (IF_EQUAL, Next, below, high),
            load(low_at),
            (code, yes, no, low),
        ]
    };
    match argument.op {
        Comparison::Is => {
            vec![load(high_at), (IF_EQUAL, Next, Fail, high), load(low_at), (IF_EQUAL, Next, Fail, low)]
        }
        Comparison::Differs => {
            vec![load(high_at), (IF_EQUAL, Next, Pass, high), load(low_at), (IF_EQUAL, Fail, Next, low)]
        }
        Comparison::More => ordered(Pass, Fail, (IF_MORE, Next, Fail)),
        Comparison::AtLeast => ordered(Pass, Fail, (IF_AT_LEAST, Next, Fail)),
        Comparison::Less => ordered(Fail, Pass, (IF_AT_LEAST, Fail, Next)),
        Comparison::AtMost => ordered(Fail, Pass, (IF_MORE, Fail, Next)),
        Comparison::Masked => {
            let (left_high, left_low) = halves(argument.value_two);
            vec![
                load(high_at),
                (AND, Next, Next, high),
                (IF_EQUAL, Next, Fail, left_high),
                load(low_at),
                (AND, Next, Next, low),
                (IF_EQUAL, Next, Fail, left_low),
            ]
        }
    }
}

fn answer(action: Action, errno: Option<u16>) -> u32 {
    let data = |usual: i32| u32::from(errno.unwrap_or(usual as u16));
    match action {
        Action::KillThread => libc::SECCOMP_RET_KILL_THREAD,
        Action::KillProcess => libc::SECCOMP_RET_KILL_PROCESS,
        Action::Trap => libc::SECCOMP_RET_TRAP,
        Action::Errno => libc::SECCOMP_RET_ERRNO | data(libc::EPERM),
        Action::Trace => libc::SECCOMP_RET_TRACE | data(libc::EPERM),
        Action::Log => libc::SECCOMP_RET_LOG,
        Action::Allow => libc::SECCOMP_RET_ALLOW,
    }
}

/// A rule holds if all it includes is there and nothing it excludes.
fn holds(rule: &Rule, machine: &Machine, capabilities: u64) -> bool {
    let has = |name: &String| super::capability(name).is_some_and(|number| capabilities & (1 << number) != 0);
    let here = |name: &String| name == machine.short_name || name == machine.architecture;
    let new_enough = |condition: &Condition| match &condition.min_kernel {
        Some(least) => version(least).is_some_and(|least| machine.kernel >= least),
        None => true,
    };
    let included = rule.includes.caps.iter().all(has)
        && (rule.includes.arches.is_empty() || rule.includes.arches.iter().any(here))
        && new_enough(&rule.includes);
    let excluded = rule.excludes.caps.iter().any(has)
        || rule.excludes.arches.iter().any(here)
        || (rule.excludes.min_kernel.is_some() && new_enough(&rule.excludes));
    included && !excluded
}

/// The first two numbers of a kernel's version.
pub(super) fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
