//! What a framework does with volumes: makes them, shared or its own, runs tasks on them, resizes and destroys them.

use tepui_client::scheduler::calls;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::offer::operation::{Create, Destroy, GrowVolume, ShrinkVolume, Type};

use super::Framework;
use super::offers::{Pool, command, reserve_some, task, volume};
use crate::chance::Rng;

/// By how much volumes grow and shrink.
const STEP_MB: f64 = 16.0;

/// Uses the volumes of an offer, or creates one: first disk is reserved, then a volume is created.
pub(super) fn change_volume(
    rng: &mut Rng,
    framework: &mut Framework,
    pool: &mut Pool,
) -> Option<pb::offer::Operation> {
    let is_volume = |resource: &pb::Resource| resource.disk.persistence.is_set();
    let is_reserved_disk = |resource: &pb::Resource| {
        resource.name == "disk" && !resource.disk.is_set() && !resource.reservations.is_empty()
    };
    if let Some(at) = pool.resources.iter().position(is_volume) {
        let volume = pool.resources.swap_remove(at);
        return match rng.below(8) {
            0 => Some(destroy(volume)),
            1 => shrink(volume),
            2..=3 => {
                let at = pool.resources.iter().position(is_reserved_disk)?;
                grow(volume, pool.resources.swap_remove(at))
            }
            _ => launch_on_volume(rng, framework, pool, volume),
        };
    }
    match pool.resources.iter().position(is_reserved_disk) {
        Some(at) => {
            let mut made = pool.resources.swap_remove(at);
            made.disk = volume(framework.name("v")).into();
            made.shared = rng.chance(0.5).then(pb::resource::SharedInfo::default).into();
            Some(pb::offer::Operation {
                r#type: Some(Type::CREATE),
                create: Create { volumes: vec![made], ..Default::default() }.into(),
                ..Default::default()
            })
        }
        None => reserve_some(pool, "disk", 4.0 * STEP_MB),
    }
}

fn destroy(volume: pb::Resource) -> pb::offer::Operation {
    pb::offer::Operation {
        r#type: Some(Type::DESTROY),
        destroy: Destroy { volumes: vec![volume], ..Default::default() }.into(),
        ..Default::default()
    }
}

fn shrink(volume: pb::Resource) -> Option<pb::offer::Operation> {
    let subtract = pb::value::Scalar { value: STEP_MB, ..Default::default() };
    let fits = volume.scalar.value > STEP_MB;
    let shrink = ShrinkVolume { volume: volume.into(), subtract: subtract.into(), ..Default::default() };
    fits.then(|| pb::offer::Operation {
        r#type: Some(Type::SHRINK_VOLUME),
        shrink_volume: shrink.into(),
        ..Default::default()
    })
}

fn grow(volume: pb::Resource, mut addition: pb::Resource) -> Option<pb::offer::Operation> {
    let fits = addition.scalar.value >= STEP_MB;
    addition.scalar = pb::value::Scalar { value: STEP_MB, ..Default::default() }.into();
    let grow = GrowVolume { volume: volume.into(), addition: addition.into(), ..Default::default() };
    fits.then(|| pb::offer::Operation {
        r#type: Some(Type::GROW_VOLUME),
        grow_volume: grow.into(),
        ..Default::default()
    })
}

/// Launches tasks on a volume: one, or several on a shared one.
fn launch_on_volume(
    rng: &mut Rng,
    framework: &mut Framework,
    pool: &mut Pool,
    volume: pb::Resource,
) -> Option<pb::offer::Operation> {
    let count = if volume.shared.is_set() { 2 } else { 1 };
    let tasks = (0..count).filter_map(|_| {
        let mut task = task(rng, framework, pool)?;
        task.resources.push(volume.clone());
        let command = command(rng, pool, &task).into();
        Some(pb::TaskInfo { command, ..task })
    });
    let tasks: Vec<_> = tasks.collect();
    (!tasks.is_empty()).then(|| calls::launch(tasks))
}
