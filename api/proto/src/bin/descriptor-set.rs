//! Prints the FileDescriptorSet of all `.proto` files of this crate, in its binary form, to standard output.
#![forbid(unsafe_code)]

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(tepui_proto::DESCRIPTOR_SET)?;
    out.flush()
}
