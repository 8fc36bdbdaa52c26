//! Small programs that the kernel runs for a cgroup of version 2: their instructions, and how they are attached.
//!
//! A program stays attached until its cgroup is removed; no process needs to hold it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// As the kernel reads it. The second byte holds the source register above the target.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

const LOAD_WORD: u8 = 0x61;
const COPY: u8 = 0xbf;
const AND: u8 = 0x54;
const SHIFT_RIGHT: u8 = 0x74;
const JUMP_UNLESS_EQUAL: u8 = 0x56;
const SET: u8 = 0xb7;
const EXIT: u8 = 0x95;

/// `target = *(u32 *)(source + offset)`.
pub(crate) fn load(target: u8, source: u8, offset: i16) -> Instruction {
    Instruction { code: LOAD_WORD, registers: source << 4 | target, offset, value: 0 }
}

pub(crate) fn copy(target: u8, source: u8) -> Instruction {
    Instruction { code: COPY, registers: source << 4 | target, offset: 0, value: 0 }
}

pub(crate) fn and(target: u8, value: i32) -> Instruction {
    Instruction { code: AND, registers: target, offset: 0, value }
}

pub(crate) fn shift_right(target: u8, value: i32) -> Instruction {
    Instruction { code: SHIFT_RIGHT, registers: target, offset: 0, value }
}

/// Leaves out so many instructions unless the lower half of a register is `value`.
pub(crate) fn skip_unless_equal(register: u8, value: i32, count: i16) -> Instruction {
    Instruction { code: JUMP_UNLESS_EQUAL, registers: register, offset: count, value }
}

/// Ends the program.
pub(crate) fn answer(value: i32) -> [Instruction; 2] {
    let end = Instruction { code: EXIT, registers: 0, offset: 0, value: 0 };
    [Instruction { code: SET, registers: 0, offset: 0, value }, end]
}

/// The kernel's commands and kinds.
const PROG_LOAD: libc::c_long = 5;
const PROG_ATTACH: libc::c_long = 8;
const CGROUP_DEVICE_PROGRAM: u32 = 15;
const CGROUP_DEVICE: u32 = 6;
/// Those of the cgroups above hold too.
const ALLOW_MULTI: u32 = 2;

/// The kernel requires the name of a licence; for these kinds of programs every licence is accepted.
const LICENCE: &std::ffi::CStr = c"Apache-2.0";

/// The first fields of the kernel's `bpf_attr` for a load.
#[repr(C)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// The same for an attachment.
#[repr(C)]
struct Attach {
    target: u32,
    program: u32,
    kind: u32,
    flags: u32,
}

/// Hands a program over devices to the kernel, which checks it.
pub(crate) fn load_devices(program: &[Instruction]) -> io::Result<OwnedFd> {
    let load = Load {
        kind: CGROUP_DEVICE_PROGRAM,
        count: program.len() as u32,
        instructions: program.as_ptr() as u64,
        licence: LICENCE.as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
    };
    let program = bpf(PROG_LOAD, &load)?;
    // SAFETY: the kernel has just opened it for us. WHY: no wrapper has this call.
    Ok(unsafe { OwnedFd::from_raw_fd(program) })
}

/// Lets a program decide about devices for all processes in a cgroup and below it.
pub(crate) fn attach_devices(cgroup: &Path, program: &[Instruction]) -> io::Result<()> {
    let (cgroup, program) = (File::open(cgroup)?, load_devices(program)?);
    let attach = Attach {
        target: cgroup.as_raw_fd().cast_unsigned(),
        program: program.as_raw_fd().cast_unsigned(),
        kind: CGROUP_DEVICE,
        flags: ALLOW_MULTI,
    };
    bpf(PROG_ATTACH, &attach).map(drop)
}

fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<i32> {
    // SAFETY: the struct has the passed length, begins as the kernel's for this command does, and its pointers
    // outlive the call. WHY: no wrapper has this call.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Runs a program as the kernel does, over a context of words.
    pub(crate) fn run(program: &[Instruction], context: &[i32]) -> u64 {
        let mut registers = [0u64; 11];
        let mut at = 0usize;
        loop {
            let Instruction { code, registers: named, offset, value } = program[at];
            let (target, source) = (usize::from(named & 15), usize::from(named >> 4));
            at += 1;
            match code {
                LOAD_WORD => registers[target] = u64::from(context[offset as usize / 4].cast_unsigned()),
                COPY => registers[target] = registers[source],
                AND => registers[target] = u64::from(registers[target] as u32 & value.cast_unsigned()),
                SHIFT_RIGHT => registers[target] = u64::from(registers[target] as u32 >> value),
                SET => registers[target] = u64::from(value.cast_unsigned()),
                JUMP_UNLESS_EQUAL if registers[target] as u32 != value.cast_unsigned() => {
                    at += offset as usize
                }
                JUMP_UNLESS_EQUAL => (),
                EXIT => return registers[0],
                other => panic!("unknown code {other:#x}"),
            }
        }
    }
}
