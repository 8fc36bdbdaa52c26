//! The cluster of a command, and the explanation of failed requests.

use std::path::PathBuf;

use anyhow::{Context, Error, Result, anyhow};
use clap::Args;
use serde_json::Value;
use tepui_client::endpoint::{MASTER_PORT, masked};
use tepui_client::operator::Client;
use tepui_client::tls::{self, Trust};
use tepui_client::{Credential, EventStream, Fault};
use tepui_proto::mesos::v1::master;

/// The path of the operator API.
const CALLS: &str = "/api/v1";

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct Cluster {
    /// Master: `host:port`, several separated by commas, or `etcd://host:port/prefix`. Also TEPUI_MASTER.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:5050")]
    pub master: String,
    /// Principal for authentication. Also TEPUI_PRINCIPAL.
    #[arg(long, value_name = "NAME", requires = "secret", hide_short_help = true)]
    principal: Option<String>,
    /// Secret of the principal; prefer TEPUI_SECRET, which is not visible to other users.
    #[arg(long, value_name = "SECRET", requires = "principal", hide_short_help = true)]
    secret: Option<String>,
    /// File with a token to authenticate with instead. Also TEPUI_TOKEN_FILE.
    #[arg(long, value_name = "FILE", conflicts_with = "principal", hide_short_help = true)]
    token_file: Option<PathBuf>,
    /// CA certificates of the cluster (PEM); enables TLS. Also TEPUI_TLS_CA.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    tls_ca: Option<PathBuf>,
    /// Client certificate (PEM). Also TEPUI_TLS_CERT.
    #[arg(long, value_name = "FILE", requires = "tls_key", hide_short_help = true)]
    tls_cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM). Also TEPUI_TLS_KEY.
    #[arg(long, value_name = "FILE", requires = "tls_cert", hide_short_help = true)]
    tls_key: Option<PathBuf>,
}

impl Cluster {
    /// The cluster of a master, with the credentials of the environment.
    pub fn at(master: String) -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            master,
            principal: set("TEPUI_PRINCIPAL"),
            secret: set("TEPUI_SECRET"),
            token_file: set("TEPUI_TOKEN_FILE").map(PathBuf::from),
            tls_ca: set("TEPUI_TLS_CA").map(PathBuf::from),
            tls_cert: set("TEPUI_TLS_CERT").map(PathBuf::from),
            tls_key: set("TEPUI_TLS_KEY").map(PathBuf::from),
        }
    }

    pub fn client(&self) -> Result<Client> {
        if let Some(trust) = self.trust() {
            tls::trust(&trust).map_err(|why| anyhow!("TLS: {why}"))?;
        }
        let client = Client::new(&self.master).with_context(|| {
            format!(
                "--master={} cannot be used; give HOST:PORT, as in --master=10.0.0.1:5050",
                masked(&self.master)
            )
        })?;
        Ok(client.with_credential(self.credential()?))
    }

    /// Files of TLS, if there are any.
    pub fn trust(&self) -> Option<Trust> {
        let own = self.tls_cert.clone().zip(self.tls_key.clone());
        self.tls_ca.clone().map(|ca| Trust { ca, own })
    }

    /// The principal of the requests, if set.
    pub fn principal(&self) -> Option<String> {
        self.principal.clone()
    }

    /// What is shown to masters and agents.
    pub fn credential(&self) -> Result<Option<Credential>> {
        if let (Some(principal), Some(secret)) = (&self.principal, &self.secret) {
            return Ok(Some(Credential::Basic { principal: principal.clone(), secret: secret.clone() }));
        }
        let Some(path) = &self.token_file else { return Ok(None) };
        let token = std::fs::read_to_string(path)
            .with_context(|| format!("--token_file: cannot read {}", path.display()))?;
        Ok(Some(Credential::Bearer(token.trim().to_owned())))
    }

    /// Gets a JSON document of the master.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.client()?.get(path).await.map_err(|fault| self.explain(fault, path))
    }

    /// Gets a JSON document of the master with a query.
    pub async fn query(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        self.client()?.query(path, query).await.map_err(|fault| self.explain(fault, path))
    }

    /// Calls the master's operator API.
    pub async fn call(&self, call: &master::Call) -> Result<master::Response> {
        self.client()?.master(call).await.map_err(|fault| self.explain(fault, CALLS))
    }

    /// Calls the master's operator API to change something; the status of the answer, which has no body.
    pub async fn change(&self, call: &master::Call) -> Result<u16> {
        let answer = self.client()?.master_with_status(call).await;
        match answer {
            Ok((status, _)) => Ok(status),
            Err(Fault::Refused { status: 400 | 404 | 409, message }) => Err(anyhow!("{message}")),
            Err(fault) => Err(self.explain(fault, CALLS)),
        }
    }

    /// The master's stream of events.
    pub async fn subscribe(&self) -> Result<EventStream<master::Event>> {
        self.client()?.subscribe().await.map_err(|fault| self.explain(fault, CALLS))
    }

    /// The fault of a request for `path`, with a suggestion.
    fn explain(&self, fault: Fault, path: &str) -> Error {
        let at = &masked(&self.master);
        let name_it = "set yours with --master=HOST:PORT or TEPUI_MASTER";
        match fault {
            Fault::Connect { err, .. } => {
                anyhow!("no master at {at}: {err}\nstart one with `tepui dev`, or {name_it}")
            }
            Fault::Timeout { after, .. } => {
                let after = after.as_secs();
                anyhow!("no answer from {at} within {after} s\ncheck the address and firewalls, or {name_it}")
            }
            Fault::Refused { status: status @ (404 | 405), .. } => anyhow!(
                "the server at {at} has no {path} ({status}) and is probably not a master\n\
                 the default port of masters is {MASTER_PORT}, of agents 5051; {name_it}"
            ),
            Fault::Refused { status: 401, .. } => anyhow!(
                "the master at {at} requires authentication\n\
                 use --principal and TEPUI_SECRET, or --token_file"
            ),
            Fault::Refused { status: 403, message } => {
                let reason = message.trim_start_matches("403 Forbidden.").trim();
                let colon = if reason.is_empty() { "" } else { ": " };
                anyhow!(
                    "the master at {at} rejected the request{colon}{reason}\npermissions are set by its --acls"
                )
            }
            Fault::Refused { status: 503, .. } => {
                anyhow!(
                    "the master at {at} is not the leader, and no leader is known; retry in a few seconds"
                )
            }
            Fault::Unreadable { why, .. } => {
                anyhow!("the answer of {at} is not that of a master: {why}\n{name_it}")
            }
            Fault::Broken { err, .. } => {
                anyhow!("the answer of {at} is not that of a master: {err}\n{name_it}")
            }
            _ => Error::from(fault).context(format!("the master at {at} failed the request")),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn faults_suggest_the_next_step() {
        let cluster = Cluster::at("m:5050".to_string());
        let explained = |fault: Fault| format!("{:#}", cluster.explain(fault, "/tasks"));
        let refused = |status: u16, message: &str| Fault::Refused { status, message: message.to_string() };
        let connect =
            Fault::Connect { peer: "m:5050".to_string(), err: std::io::ErrorKind::ConnectionRefused.into() };
        let unreadable = Fault::Unreadable { peer: "m:5050".to_string(), why: "expected value".to_string() };
        let faults = [
            connect,
            refused(404, ""),
            refused(403, "no"),
            refused(403, "403 Forbidden."),
            refused(503, ""),
            unreadable,
            refused(500, "oops"),
        ];
        let texts: Vec<String> = faults.into_iter().map(explained).collect();
        expect![[r#"
            no master at m:5050: connection refused
            start one with `tepui dev`, or set yours with --master=HOST:PORT or TEPUI_MASTER

            the server at m:5050 has no /tasks (404) and is probably not a master
            the default port of masters is 5050, of agents 5051; set yours with --master=HOST:PORT or TEPUI_MASTER

            the master at m:5050 rejected the request: no
            permissions are set by its --acls

            the master at m:5050 rejected the request
            permissions are set by its --acls

            the master at m:5050 is not the leader, and no leader is known; retry in a few seconds

            the answer of m:5050 is not that of a master: expected value
            set yours with --master=HOST:PORT or TEPUI_MASTER

            the master at m:5050 failed the request: 500: oops"#]].assert_eq(&texts.join("\n\n"));
    }
}
