//! Write frameworks, executors and operator tools for any cluster that speaks the Mesos v1 HTTP APIs.
//!
//! - [`scheduler`]: a framework gets offers, launches tasks, receives their updates.
//! - [`executor`]: a program that an agent starts, which runs tasks in its own way.
//! - [`operator`]: the state of masters and agents, `/api/v1` calls, events, sandbox files.
//!
//! Each of the first two has a pure session (the protocol, without any I/O) and a transport over tokio that drives it.
//! Messages are those of the protocol, in [`v1`]; they have `Default`, so name only the fields that matter.
//!
//! ```no_run
//! use tepui_client::scheduler::{self, Event};
//! use tepui_client::v1::FrameworkInfo;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let framework = FrameworkInfo { name: "hello".into(), user: "nobody".into(), ..Default::default() };
//! let mut scheduler = scheduler::connect("127.0.0.1:5050", framework)?;
//! while let Some(event) = scheduler.next_event().await {
//!     match event {
//!         Event::Offers(offers) => scheduler.decline(offers.into_iter().filter_map(|o| o.id.into_option()), None).await?,
//!         Event::Update(status) => scheduler.acknowledge(&status).await?,
//!         other => println!("{other:?}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! `examples/framework.rs` and `examples/executor.rs` are complete programs.
//!
//! Absent: internals of our own master and agent; this crate has only the protocol.
#![forbid(unsafe_code)]

pub mod backoff;
mod connection;
mod credential;
mod discovery;
pub mod duration;
pub mod endpoint;
pub mod executor;
pub mod exit;
mod fault;
mod format;
pub mod operator;
mod pipeline;
pub mod random;
pub mod scheduler;
pub mod shorthand;
mod stream;
pub mod tls;

pub use connection::{CONNECT_TIMEOUT, RESPONSE_TIMEOUT};
pub use credential::Credential;
pub use endpoint::{Endpoint, Masters};
pub use fault::Fault;
pub use format::{Format, MESSAGE_BYTES_MAX};
pub use pipeline::CALLS_IN_FLIGHT_MAX;
pub use stream::EventStream;
pub use tepui_proto::mesos::v1;
