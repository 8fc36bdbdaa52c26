//! Generates the Rust form of every `.proto` file below `proto/`.
//!
//! Fed by the folder itself: a new file is picked up without a change here.
//! Output lives in `OUT_DIR` only; nothing generated is checked in, and no protoc is needed.

use std::error::Error;
use std::path::{Path, PathBuf};

use buffa_build::{MapRepr, PointerRepr};
use protox::prost_reflect::DescriptorPool;

mod files;
mod layout;

const PROTO_ROOT: &str = "proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed={PROTO_ROOT}");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let files = files::proto_files(Path::new(PROTO_ROOT))?;

    let mut compiler = protox::Compiler::new([PROTO_ROOT])?;
    compiler.include_imports(true).include_source_info(false);
    compiler.open_files(&files)?;
    let set = out.join("descriptor-set.bin");
    files::write_if_changed(&set, &compiler.encode_file_descriptor_set())?;

    generate_messages(&set, &files, &compiler.descriptor_pool())
}

/// Structs and the binary form. Message fields are boxed, so that an unset one costs a pointer, except small ones that are always set.
fn generate_messages(
    set: &Path,
    files: &[String],
    pool: &DescriptorPool,
) -> Result<(), Box<dyn Error>> {
    buffa_build::Config::new()
        .descriptor_set(set)
        .files(files)
        .generate_views(false)
        .preserve_unknown_fields(true)
        .idiomatic_enum_aliases(false)
        .generate_with_setters(true)
        .map_type(MapRepr::BTreeMap)
        .box_type(PointerRepr::Box)
        .box_type_in(PointerRepr::Inline, &layout::inline_fields(pool))
        .file_per_package(true)
        .include_file("messages.rs")
        .compile()
}
