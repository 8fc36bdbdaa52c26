//! devices: which devices a container may make, read and write. All may be made, few may be opened.
//!
//! The rules are the same on both versions: v1 takes them as text, v2 as a program for the kernel. Pure.

use std::fmt;
use std::path::PathBuf;

use crate::host::bpf::{self, Instruction};
use crate::plan::NodeKind;

/// What a process may do with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceAccess {
    pub read: bool,
    pub write: bool,
    pub mknod: bool,
}

/// Devices by kind and number; no number means all. Access that no rule allows is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub kind: NodeKind,
    pub major: Option<u32>,
    pub minor: Option<u32>,
    pub access: DeviceAccess,
}

/// A device of the host that containers may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedDevice {
    pub(crate) path: PathBuf,
    pub(crate) kind: NodeKind,
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) access: DeviceAccess,
}

impl AllowedDevice {
    pub(crate) fn rule(&self) -> Rule {
        Rule { kind: self.kind, major: Some(self.major), minor: Some(self.minor), access: self.access }
    }
}

const MAKE: DeviceAccess = DeviceAccess { read: false, write: false, mknod: true };
const ALL: DeviceAccess = DeviceAccess { read: true, write: true, mknod: true };

/// Character devices available to every container; no minor number means all.
const USUAL: [(u32, Option<u32>); 12] = [
    (5, Some(1)),    // console
    (4, Some(0)),    // tty0
    (4, Some(1)),    // tty1
    (136, None),     // pts
    (5, Some(2)),    // ptmx
    (10, Some(200)), // tun
    (1, Some(3)),    // null
    (1, Some(5)),    // zero
    (1, Some(7)),    // full
    (5, Some(0)),    // tty
    (1, Some(9)),    // urandom
    (1, Some(8)),    // random
];

/// What every container may do. Nodes of any kind may be made: that alone opens nothing.
pub(crate) fn usual() -> Vec<Rule> {
    let make = |kind| Rule { kind, major: None, minor: None, access: MAKE };
    let open = |(major, minor)| Rule { kind: NodeKind::Character, major: Some(major), minor, access: ALL };
    [make(NodeKind::Character), make(NodeKind::Block)].into_iter().chain(USUAL.map(open)).collect()
}

/// As v1 takes it: `c 1:3 rwm`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: Option<u32>| number.map_or(String::from("*"), |number| number.to_string());
        let DeviceAccess { read, write, mknod } = self.access;
        let access: String = [(read, 'r'), (write, 'w'), (mknod, 'm')]
            .iter()
            .filter(|(has, _)| *has)
            .map(|(_, c)| c)
            .collect();
        write!(f, "{} {}:{} {access}", self.kind.letter(), number(self.major), number(self.minor))
    }
}

/// The kernel's bits.
fn bits(access: DeviceAccess) -> i32 {
    const MKNOD: i32 = 1;
    const READ: i32 = 2;
    const WRITE: i32 = 4;
    let bit = |has: bool, bit: i32| if has { bit } else { 0 };
    bit(access.mknod, MKNOD) | bit(access.read, READ) | bit(access.write, WRITE)
}

/// The program that v2 runs whenever a process makes or opens a device: 1 lets it, 0 forbids it.
///
/// It is given kind and access in one number, then major and minor; each rule is a chain of comparisons that ends with
/// yes or leads to the next rule.
pub(crate) fn program(rules: &[Rule]) -> Vec<Instruction> {
    const CONTEXT: u8 = 1;
    const KIND: u8 = 2;
    const ACCESS: u8 = 3;
    const MAJOR: u8 = 4;
    const MINOR: u8 = 5;
    const SCRATCH: u8 = 6;
    let mut program = vec![
        bpf::load(KIND, CONTEXT, 0),
        bpf::copy(ACCESS, KIND),
        bpf::and(KIND, 0xffff),
        bpf::shift_right(ACCESS, 16),
        bpf::load(MAJOR, CONTEXT, 4),
        bpf::load(MINOR, CONTEXT, 8),
    ];
    for rule in rules {
        let kind = match rule.kind {
            NodeKind::Block => 1,
            NodeKind::Character => 2,
        };
        // The requested access beyond the rule.
        let mut tests = vec![(KIND, kind), (SCRATCH, 0)];
        tests.extend(rule.major.map(|major| (MAJOR, major.cast_signed())));
        tests.extend(rule.minor.map(|minor| (MINOR, minor.cast_signed())));
        program.push(bpf::copy(SCRATCH, ACCESS));
        program.push(bpf::and(SCRATCH, !bits(rule.access)));
        let yes = bpf::answer(1);
        for (index, (register, value)) in tests.iter().enumerate() {
            let left = tests.len() - index - 1 + yes.len();
            program.push(bpf::skip_unless_equal(*register, *value, left as i16));
        }
        program.extend(yes);
    }
    program.extend(bpf::answer(0));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_rules_have_the_kernel_format() {
        let shown: Vec<String> = usual().iter().map(Rule::to_string).collect();
        assert_eq!(shown[..5], ["c *:* m", "b *:* m", "c 5:1 rwm", "c 4:0 rwm", "c 4:1 rwm"]);
        assert_eq!(shown[5], "c 136:* rwm");
        let read = Rule {
            kind: NodeKind::Block,
            major: Some(8),
            minor: Some(0),
            access: DeviceAccess { read: true, write: false, mknod: false },
        };
        assert_eq!(read.to_string(), "b 8:0 r");
    }

    /// The kernel's decision, by running the program as the kernel does.
    fn allows(rules: &[Rule], kind: NodeKind, number: (u32, u32), access: DeviceAccess) -> bool {
        let kind = if kind == NodeKind::Block { 1 } else { 2 };
        let context = [bits(access) << 16 | kind, number.0.cast_signed(), number.1.cast_signed()];
        bpf::tests::run(&program(rules), &context) == 1
    }

    #[test]
    fn bpf_program_agrees_with_the_device_rules() {
        use NodeKind::{Block, Character};
        let only = |read, write, mknod| DeviceAccess { read, write, mknod };
        let mut rules = usual();
        rules.push(Rule { kind: Block, major: Some(8), minor: Some(1), access: only(true, false, false) });
        for (kind, number, access, allowed) in [
            (Character, (1, 3), ALL, true),
            (Character, (1, 3), only(true, false, false), true),
            (Character, (1, 1), only(true, false, false), false),
            (Character, (1, 1), MAKE, true),
            (Character, (136, 77), only(true, true, false), true),
            (Block, (1, 3), only(true, false, false), false),
            (Block, (8, 1), only(true, false, false), true),
            (Block, (8, 1), only(true, true, false), false),
            (Block, (8, 1), MAKE, true),
            (Block, (8, 0), only(true, false, false), false),
        ] {
            assert_eq!(allows(&rules, kind, number, access), allowed, "{kind:?} {number:?} {access:?}");
        }
        assert!(!allows(&[], Character, (1, 3), MAKE), "no rule allows nothing");
    }
}
