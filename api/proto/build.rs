fn main() {
    let fds = protox::Compiler::new(["proto"]).unwrap().include_imports(true).open_files(["mesos/v1/scheduler/scheduler.proto","mesos/v1/executor/executor.proto","mesos/v1/master/master.proto","mesos/v1/agent/agent.proto","mesos/v1/resource_provider/resource_provider.proto"]).unwrap().encode_file_descriptor_set();
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR").unwrap());
    let set = out.join("set.bin");
    std::fs::write(&set, fds).unwrap();
    buffa_build::Config::new().descriptor_set(&set).files(&["mesos/v1/mesos.proto","mesos/v1/scheduler/scheduler.proto"]).generate_views(false).preserve_unknown_fields(true).map_type(buffa_build::MapRepr::BTreeMap).file_per_package(true).include_file("mod.rs").compile().unwrap();
}
