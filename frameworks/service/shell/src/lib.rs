//! The scheduler of one service as a program: its link to the master, its records, its HTTP API.
//!
//! Drives the pure scheduler of `tepui-service`: events of the master and requests of operators become inputs, effects become
//! calls and answers. With records in etcd several schedulers share a service: one is active, the others stand by.
//!
//! Never here: what is launched where, and what a plan does next.
#![forbid(unsafe_code)]

mod agents;
mod api;
pub mod bootstrap;
mod convert;
mod driver;
mod fault;
mod front;
mod handle;
mod options;
mod rivals;
mod run;
mod standby;
mod term;

pub use convert::API_LABEL;
pub use fault::{End, ServiceFault};
pub use options::{Options, Reload, StoreAt, Upload};
pub use run::{RunningService, run};
pub use tepui_http::auth::Credentials;
pub use tepui_http::{Authentication, BrowserPolicy, ClientTls, Tls};
pub use tepui_service::scheduler::{Config, ExecutorOverhead, PlanView, StepView, View};
pub use tepui_store::etcd::EtcdAddress;
