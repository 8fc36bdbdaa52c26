//! Which cluster a command talks to, and what to tell people when it does not answer.

use anyhow::{Context, Error, Result, anyhow};
use clap::Args;
use serde_json::Value;
use tepui_client::Fault;
use tepui_client::endpoint::MASTER_PORT;
use tepui_client::operator::Client;
use tepui_proto::mesos::v1::master;

#[derive(Args, Clone, Debug)]
pub struct Cluster {
    /// The master, or several by comma: `host:port`. Also TEPUI_MASTER.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:5050")]
    pub master: String,
}

impl Cluster {
    pub fn client(&self) -> Result<Client> {
        Client::new(&self.master).with_context(|| {
            format!("--master={} cannot be used; give HOST:PORT, as in --master=10.0.0.1:5050", self.master)
        })
    }

    /// Gets a JSON document of the master.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.client()?.get(path).await.map_err(|fault| self.explain(fault))
    }

    /// Gets a JSON document of the master with a query.
    pub async fn query(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        self.client()?.query(path, query).await.map_err(|fault| self.explain(fault))
    }

    /// Calls the master's operator API.
    pub async fn call(&self, call: &master::Call) -> Result<master::Response> {
        self.client()?.master(call).await.map_err(|fault| self.explain(fault))
    }

    /// The fault in words that say what to do next.
    pub fn explain(&self, fault: Fault) -> Error {
        let at = &self.master;
        let name_it = "name yours with --master=HOST:PORT or TEPUI_MASTER";
        match fault {
            Fault::Connect { err, .. } => {
                anyhow!("no master at {at}: {err}\nstart one with `tepui dev`, or {name_it}")
            }
            Fault::Timeout { after, .. } => {
                let after = after.as_secs();
                anyhow!(
                    "no answer from {at} within {after} s\nis the address right, and no firewall between? Else {name_it}"
                )
            }
            Fault::Refused { status: 404 | 405, .. } => anyhow!(
                "what answers at {at} is not a master\nmasters listen on port {MASTER_PORT} unless told otherwise, agents on 5051; {name_it}"
            ),
            Fault::Refused { status: status @ (401 | 403), message } => {
                anyhow!("the master at {at} does not allow it: {status} {message}")
            }
            Fault::Refused { status: 503, .. } => {
                anyhow!(
                    "the master at {at} does not lead now, and knows no leader; try again in a few seconds"
                )
            }
            Fault::Unreadable { .. } | Fault::Broken { .. } => Error::from(fault)
                .context(format!("what listens at {at} does not talk like a master; {name_it}")),
            _ => Error::from(fault).context(format!("the master at {at} cannot answer")),
        }
    }
}
