//! Filters, run by a machine as small as the kernel's.

use super::*;

const X86: Machine =
    Machine { architecture: "SCMP_ARCH_X86_64", short_name: "amd64", audit: 0xc000_003e, kernel: (6, 1) };

/// What the kernel would do about a call.
fn run(filter: &Filter, audit: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let (mut at, mut word) = (0, 0u32);
    let load = |place: u32| match place {
        NUMBER => number,
        ARCHITECTURE => audit,
        place => {
            let value = arguments[((place - ARGUMENTS) / 8) as usize];
            if place % 8 == 0 { value as u32 } else { (value >> 32) as u32 }
        }
    };
    loop {
        let (code, yes, no, operand) = filter.0[at];
        at += 1;
        let holds = match code {
            LOAD => {
                word = load(operand);
                continue;
            }
            AND => {
                word &= operand;
                continue;
            }
            JUMP => {
                at += operand as usize;
                continue;
            }
            RETURN => return operand,
            IF_EQUAL => word == operand,
            IF_MORE => word > operand,
            IF_AT_LEAST => word >= operand,
            code => panic!("no such instruction: {code}"),
        };
        at += usize::from(if holds { yes } else { no });
    }
}

fn filter(rules: &str, capabilities: u64) -> Filter {
    let text = format!(
        "{{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"archMap\":[{{\"architecture\":\"SCMP_ARCH_X86_64\",\"subArchitectures\":[\"SCMP_ARCH_X86\"]}}],\"syscalls\":[{rules}]}}"
    );
    let profile = Profile::parse(text.as_bytes()).expect("a profile");
    compile(&profile, &X86, capabilities).expect("a filter")
}

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const DENY: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;

fn number(name: &str) -> u32 {
    syscalls::number(name).expect("known")
}

#[test]
fn seccomp_rules_match_system_call_names() {
    let rules = r#"{"names":["read","write","no_such_call"],"action":"SCMP_ACT_ALLOW"},
        {"name":"mount","action":"SCMP_ACT_ERRNO","errnoRet":38,"args":null},
        {"names":["reboot"],"action":"SCMP_ACT_KILL"}, {"names":["mount"],"action":"SCMP_ACT_ALLOW"}"#;
    let filter = filter(rules, u64::MAX);
    for (name, expected) in [
        ("read", ALLOW),
        ("write", ALLOW),
        ("mount", libc::SECCOMP_RET_ERRNO | 38),
        ("reboot", libc::SECCOMP_RET_KILL_THREAD),
        ("getpid", DENY),
    ] {
        assert_eq!(run(&filter, X86.audit, number(name), [0; 6]), expected, "{name}");
    }
    let kill = libc::SECCOMP_RET_KILL_PROCESS;
    assert_eq!(run(&filter, 0x4000_0003, number("read"), [0; 6]), kill, "another architecture");
    #[cfg(target_arch = "x86_64")]
    assert_eq!(run(&filter, X86.audit, X32 | number("read"), [0; 6]), kill, "the one in disguise");
}

#[test]
fn seccomp_argument_comparisons_are_exact() {
    const BIG: u64 = 1 << 40;
    for (op, value, two, yes, no) in [
        ("EQ", BIG + 5, 0, vec![BIG + 5], vec![5, BIG, BIG + 6]),
        ("NE", BIG + 5, 0, vec![5, BIG, BIG + 6], vec![BIG + 5]),
        ("GT", BIG + 5, 0, vec![BIG + 6, 2 * BIG], vec![BIG + 5, BIG, 6]),
        ("GE", BIG + 5, 0, vec![BIG + 5, 2 * BIG], vec![BIG + 4, 9]),
        ("LT", BIG + 5, 0, vec![BIG + 4, 9], vec![BIG + 5, 2 * BIG]),
        ("LE", BIG + 5, 0, vec![BIG + 5, BIG + 4, 9], vec![BIG + 6, 2 * BIG]),
        ("MASKED_EQ", BIG + 0xf0, BIG + 0x10, vec![BIG + 0x1f], vec![0x1f, BIG + 0x20]),
    ] {
        let args = format!("[{{\"index\":1,\"value\":{value},\"valueTwo\":{two},\"op\":\"SCMP_CMP_{op}\"}}]");
        let rules = format!(
            "{{\"names\":[\"getpid\",\"personality\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":{args}}},\
             {{\"names\":[\"getuid\"],\"action\":\"SCMP_ACT_ALLOW\"}}"
        );
        let filter = filter(&rules, u64::MAX);
        let with = |name: &str, argument| run(&filter, X86.audit, number(name), [0, argument, 0, 0, 0, 0]);
        for argument in yes {
            assert_eq!(with("personality", argument), ALLOW, "{op} {argument}");
        }
        for argument in no {
            assert_eq!(with("personality", argument), DENY, "{op} {argument}");
            assert_eq!(with("getuid", argument), ALLOW, "what comes behind");
        }
    }
}

#[test]
fn seccomp_rules_depend_on_capabilities_and_kernel() {
    let rules = r#"{"names":["mount"],"action":"SCMP_ACT_ALLOW","includes":{"caps":["CAP_SYS_ADMIN"]}},
        {"names":["bpf"],"action":"SCMP_ACT_ALLOW","excludes":{"caps":["CAP_KILL"]}},
        {"names":["sync"],"action":"SCMP_ACT_ALLOW","includes":{"arches":["s390x"]}},
        {"names":["ptrace"],"action":"SCMP_ACT_ALLOW","includes":{"minKernel":"4.8"}},
        {"names":["kexec_load"],"action":"SCMP_ACT_ALLOW","includes":{"minKernel":"9.0"}}"#;
    let allowed = |capabilities| {
        let filter = filter(rules, capabilities);
        let is_allowed = |name: &&str| run(&filter, X86.audit, number(name), [0; 6]) == ALLOW;
        ["mount", "bpf", "sync", "ptrace", "kexec_load"].into_iter().filter(is_allowed).collect::<Vec<_>>()
    };
    assert_eq!(allowed(1 << 21), ["mount", "bpf", "ptrace"]);
    assert_eq!(allowed(1 << 5), ["ptrace"]);
}

#[test]
fn invalid_seccomp_profiles_are_rejected() {
    for (text, why) in [
        ("{}", "defaultAction"),
        ("{\"defaultAction\":\"SCMP_ACT_NOTHING\"}", "SCMP_ACT_NOTHING"),
        ("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"action\":\"SCMP_ACT_ALLOW\"}]}", "no names"),
        (
            "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":[\"read\"],\"action\":\"SCMP_ACT_LOG\",\
             \"args\":[{\"index\":6,\"value\":0,\"op\":\"SCMP_CMP_EQ\"}]}]}",
            "no argument 6",
        ),
    ] {
        let fault = Profile::parse(text.as_bytes()).expect_err("wrong");
        assert!(fault.to_string().contains(why), "{text}: {fault}");
    }
    let other =
        Profile::parse(b"{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[\"SCMP_ARCH_ARM\"]}");
    let fault = compile(&other.expect("well-formed"), &X86, 0).expect_err("not ours");
    assert!(fault.to_string().contains("SCMP_ARCH_X86_64"), "{fault}");
}
