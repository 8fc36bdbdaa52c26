//! Scripts: what happens to an agent, line by line, and everything it records (`=`) and makes visible.

mod authorization;
mod chaos;
mod details;
mod disk_pressure;
pub(crate) mod driver;
mod ends;
mod everywhere;
mod evictions;
mod histories;
mod kills;
mod launches;
mod life;
mod links;
mod main_path;
mod nested;
mod overdue_kills;
mod oversubscription;
mod restarted_agent;
mod restarted_ends;
mod restarts;
mod slack;
mod users;
