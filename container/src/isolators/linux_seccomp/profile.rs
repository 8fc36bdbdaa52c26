//! Profiles in Docker's format: the allowed system calls, and the action for the others.
//!
//! Only parsed here; errors name the part that is invalid.

use serde::Deserialize;

use crate::isolators::fault::ProfileFault;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Profile {
    pub default_action: Action,
    pub default_errno_ret: Option<u16>,
    #[serde(default)]
    pub arch_map: Vec<ArchMap>,
    #[serde(default)]
    pub architectures: Vec<String>,
    #[serde(default)]
    pub syscalls: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct ArchMap {
    pub architecture: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rule {
    /// The older form of `names`.
    pub name: Option<String>,
    #[serde(default)]
    pub names: Vec<String>,
    pub action: Action,
    pub errno_ret: Option<u16>,
    #[serde(default, deserialize_with = "or_empty")]
    pub args: Vec<Argument>,
    #[serde(default)]
    pub includes: Condition,
    #[serde(default)]
    pub excludes: Condition,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Argument {
    pub index: u8,
    pub value: u64,
    #[serde(default)]
    pub value_two: u64,
    pub op: Comparison,
}

/// When a rule holds, or does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition {
    #[serde(default)]
    pub caps: Vec<String>,
    #[serde(default)]
    pub arches: Vec<String>,
    /// Such as `4.8`.
    pub min_kernel: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Action {
    #[serde(rename = "SCMP_ACT_KILL", alias = "SCMP_ACT_KILL_THREAD")]
    KillThread,
    #[serde(rename = "SCMP_ACT_KILL_PROCESS")]
    KillProcess,
    #[serde(rename = "SCMP_ACT_TRAP")]
    Trap,
    #[serde(rename = "SCMP_ACT_ERRNO")]
    Errno,
    #[serde(rename = "SCMP_ACT_TRACE")]
    Trace,
    #[serde(rename = "SCMP_ACT_LOG")]
    Log,
    #[serde(rename = "SCMP_ACT_ALLOW")]
    Allow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Comparison {
    #[serde(rename = "SCMP_CMP_NE")]
    Differs,
    #[serde(rename = "SCMP_CMP_LT")]
    Less,
    #[serde(rename = "SCMP_CMP_LE")]
    AtMost,
    #[serde(rename = "SCMP_CMP_EQ")]
    Is,
    #[serde(rename = "SCMP_CMP_GE")]
    AtLeast,
    #[serde(rename = "SCMP_CMP_GT")]
    More,
    /// `value` is the mask, `value_two` what is left.
    #[serde(rename = "SCMP_CMP_MASKED_EQ")]
    Masked,
}

/// Docker writes `null` for no arguments.
fn or_empty<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Vec<Argument>, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

impl Profile {
    pub fn parse(text: &[u8]) -> Result<Profile, ProfileFault> {
        let profile: Profile = serde_json::from_slice(text)?;
        for rule in &profile.syscalls {
            if let Some(argument) = rule.args.iter().find(|argument| argument.index > 5) {
                return Err(ProfileFault::Argument(argument.index));
            }
            if rule.names().next().is_none() {
                return Err(ProfileFault::NoNames);
            }
        }
        Ok(profile)
    }

    /// Whether the rule applies to an architecture; a rule without a list applies to all.
    pub fn is_for(&self, architecture: &str) -> bool {
        let mapped = self.arch_map.iter().map(|map| &map.architecture);
        let mut all = mapped.chain(&self.architectures).peekable();
        all.peek().is_none() || all.any(|one| one == architecture)
    }
}

impl Rule {
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.name.iter().chain(&self.names)
    }
}
