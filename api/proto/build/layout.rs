//! Which message fields are stored inside their parent instead of behind a pointer.

use protox::prost_reflect::{DescriptorPool, Kind};

/// Messages of one string or one number. A required field of such a type is stored inline: it is always set, and a task holds several.
const SMALL: [&str; 11] = [
    "mesos.v1.AgentID",
    "mesos.v1.DurationInfo",
    "mesos.v1.ExecutorID",
    "mesos.v1.FrameworkID",
    "mesos.v1.OfferID",
    "mesos.v1.OperationID",
    "mesos.v1.ResourceProviderID",
    "mesos.v1.TaskID",
    "mesos.v1.TimeInfo",
    "mesos.v1.UUID",
    "mesos.v1.Value.Scalar",
];

/// Optional, but nearly always set, and the most frequent message of all.
const NEARLY_ALWAYS_SET: &str = "mesos.v1.Resource.scalar";

pub fn inline_fields(pool: &DescriptorPool) -> Vec<String> {
    pool.all_messages()
        .flat_map(|message| message.fields().collect::<Vec<_>>())
        .filter(|field| match field.kind() {
            Kind::Message(to) => {
                field.full_name() == NEARLY_ALWAYS_SET
                    || (field.is_required() && SMALL.contains(&to.full_name()))
            }
            _ => false,
        })
        .map(|field| field.full_name().to_string())
        .collect()
}
