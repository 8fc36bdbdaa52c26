//! `weights`: many clients change weights at once; each answer comes when its change is on the disk.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::program::Program;
use crate::report::{Report, Row};
use crate::spread::Spread;

/// The longest head of an answer.
const HEAD_BYTES_MAX: usize = 16_384;

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Clients that change weights at the same time.
    #[arg(long, default_value_t = 200)]
    pub clients: usize,
    /// Changes that each of them makes, one after the other.
    #[arg(long, default_value_t = 50)]
    pub updates: usize,
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
}

pub fn run(options: &Options) -> Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report =
        Report::new("weights").setting("clients", options.clients).setting("updates", options.updates);
    for number in 1..=options.runs {
        let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
        let master = Program::master(folder.path(), &[])?;
        let began = Instant::now();
        let spread = runtime.block_on(all(&master.address, options))?;
        let took = began.elapsed().as_secs_f64();
        let row = Row::new().with("run", number).measured("updates_per_s", spread.len() as f64 / took);
        report.push(spread.percentiles(row));
        master.stop()?;
    }
    Ok(report)
}

async fn all(address: &str, options: &Options) -> Result<Spread> {
    let clients = (0..options.clients).map(|number| {
        let address = address.to_owned();
        tokio::spawn(one(address, number, options.updates))
    });
    let mut spread = Spread::default();
    for client in clients.collect::<Vec<_>>() {
        client.await??.into_iter().for_each(|time| spread.push(time));
    }
    Ok(spread)
}

/// One client on one connection, with a role of its own.
async fn one(address: String, number: usize, updates: usize) -> Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(&address).await.context("cannot connect")?;
    stream.set_nodelay(true)?;
    let mut times = Vec::with_capacity(updates);
    for update in 0..updates {
        let body = format!(r#"[{{"role":"role{number}","weight":{}.5}}]"#, update + 1);
        let request = format!(
            "PUT /weights HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let began = Instant::now();
        stream.write_all(request.as_bytes()).await?;
        let head = head(&mut stream).await?;
        if !head.starts_with("HTTP/1.1 200") {
            bail!("a change was refused: {head}");
        }
        times.push(began.elapsed());
    }
    Ok(times)
}

/// An answer without a body.
async fn head(stream: &mut TcpStream) -> Result<String> {
    let (mut head, mut chunk) = (Vec::new(), [0; 1024]);
    while !head.ends_with(b"\r\n\r\n") {
        let count = stream.read(&mut chunk).await?;
        if count == 0 || head.len() > HEAD_BYTES_MAX {
            bail!("no whole answer: {}", String::from_utf8_lossy(&head));
        }
        head.extend_from_slice(&chunk[..count]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
