//! Real masters, agents and dev clusters: started from the built binary, watched through `/proc`, ended by their id.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};
use tepui_facilities::Port;

/// One started program. Dropping it ends it.
#[derive(Debug)]
pub struct Program {
    child: Option<Child>,
    arguments: Vec<String>,
    /// Of a manager, behind all options: its master.
    argument: Option<String>,
    log: PathBuf,
    port: Port,
    /// "127.0.0.1:port"; kept over a restart.
    pub address: String,
}

/// What a process has used so far.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub cpu_seconds: f64,
    /// Of the children that it waited for, and of theirs.
    pub children_cpu_seconds: f64,
    pub rss_mib: f64,
    pub peak_rss_mib: f64,
}

impl Program {
    /// A master below `folder`, with these flags besides.
    pub fn master(folder: &Path, flags: &[String]) -> Result<Self> {
        let work_dir = format!("--work_dir={}", folder.join("master").display());
        Self::start(
            folder.join("master.log"),
            &["master".to_owned(), work_dir, "--ip=127.0.0.1".to_owned()],
            flags,
        )
    }

    /// An agent of `master` below `folder`.
    pub fn agent(folder: &Path, index: usize, master: &str, flags: &[String]) -> Result<Self> {
        let own = folder.join(format!("agent-{index}"));
        let arguments = [
            "agent".to_owned(),
            "--ip=127.0.0.1".to_owned(),
            format!("--master={master}"),
            format!("--work_dir={}", own.display()),
            format!("--runtime_dir={}", own.join("run").display()),
        ];
        Self::start(own.with_extension("log"), &arguments, flags)
    }

    /// A whole cluster in one process below `folder`.
    pub fn dev(folder: &Path, flags: &[String]) -> Result<Self> {
        let work_dir = format!("--work_dir={}", folder.join("dev").display());
        Self::start(folder.join("dev.log"), &["dev".to_owned(), work_dir], flags)
    }

    /// A manager of `tepui swarm` below `folder`, with these options of the cluster.
    pub fn swarm(folder: &Path, master: &str, cluster: &[String]) -> Result<Self> {
        let mut arguments = ["swarm", "manage"].map(str::to_owned).to_vec();
        arguments.push(format!("--state-dir={}", folder.join("swarm").display()));
        arguments.extend(cluster.iter().map(|option| format!("--cluster-opt={option}")));
        let log = folder.join("swarm.log");
        Self::launch(log, arguments, Some(master.to_owned()))
    }

    fn start(log: PathBuf, arguments: &[String], flags: &[String]) -> Result<Self> {
        Self::launch(log, [arguments, flags].concat(), None)
    }

    fn launch(log: PathBuf, arguments: Vec<String>, argument: Option<String>) -> Result<Self> {
        let port = Port::take();
        let mut program = Self { child: None, arguments, argument, log, address: port.address(), port };
        program.restart()?;
        Ok(program)
    }

    /// Starts it again, on the address it had; back as soon as it listens.
    pub fn restart(&mut self) -> Result<()> {
        self.kill();
        let log = File::options().create(true).append(true).open(&self.log)?;
        let binary = binary()?;
        let listen = match &self.argument {
            Some(_) => format!("--host=tcp://{}", self.address),
            None => format!("--port={}", self.port.number()),
        };
        let mut child = Command::new(&binary)
            .args(&self.arguments)
            .arg(listen)
            .args(&self.argument)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let stdout = BufReader::new(child.stdout.take().context("stdout is piped")?);
        self.child = Some(child);
        self.address = self.listening(stdout)?;
        Ok(())
    }

    /// The first line says where it listens. The others are read and dropped, so that it can go on writing.
    fn listening(&self, mut stdout: BufReader<std::process::ChildStdout>) -> Result<String> {
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        match line.split_once("://").and_then(|(_, rest)| rest.split_whitespace().next()) {
            Some(address) => Ok(address.to_owned()),
            None => {
                let log = std::fs::read_to_string(&self.log).unwrap_or_default();
                bail!("{} did not start; it wrote:\n{line}{log}", self.arguments.join(" "))
            }
        }
    }

    /// SIGKILL: it gets no chance to say good-bye.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Asks it to end in order, and waits until it has.
    pub fn stop(mut self) -> Result<()> {
        let mut child = self.child.take().context("it runs")?;
        kill(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGTERM)?;
        child.wait()?;
        Ok(())
    }

    /// Processor time of the threads of a name.
    pub fn thread_cpu_seconds(&self, name: &str) -> Result<f64> {
        let id = self.child.as_ref().context("it runs")?.id();
        let mut seconds = 0.0;
        for thread in std::fs::read_dir(format!("/proc/{id}/task"))? {
            let folder = thread?.path();
            if std::fs::read_to_string(folder.join("comm"))?.trim_end() == name {
                seconds += cpu_seconds(&std::fs::read_to_string(folder.join("stat"))?)?.0;
            }
        }
        Ok(seconds)
    }

    /// How often its threads that live waited for something, each time with a wake at the end.
    pub fn waits(&self) -> Result<f64> {
        let id = self.child.as_ref().context("it runs")?.id();
        let mut waits = 0.0;
        for thread in std::fs::read_dir(format!("/proc/{id}/task"))? {
            // It may have ended meanwhile.
            let Ok(status) = std::fs::read_to_string(thread?.path().join("status")) else { continue };
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            waits += line.context("status has all its lines")?.trim().parse::<f64>()?;
        }
        Ok(waits)
    }

    pub fn usage(&self) -> Result<Usage> {
        let id = self.child.as_ref().context("it runs")?.id();
        usage(id).with_context(|| {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            format!("{} has ended; it wrote:\n{log}", self.arguments.join(" "))
        })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Processor time of everything on this machine.
pub fn machine_cpu_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let fields: Vec<&str> =
        stat.lines().next().context("stat begins with all processors")?.split_whitespace().collect();
    // user, nice and system; irq, softirq and steal; not idle and iowait, which are between them.
    let [_, user, nice, system, _, _, irq, softirq, steal, ..] = fields[..] else {
        bail!("/proc/stat has fewer fields than expected")
    };
    let mut ticks = 0.0;
    for field in [user, nice, system, irq, softirq, steal] {
        ticks += field.parse::<f64>()?;
    }
    Ok(ticks / ticks_per_second()?)
}

/// Processor time of this process.
pub fn own_cpu_seconds() -> Result<f64> {
    Ok(cpu_seconds(&std::fs::read_to_string("/proc/self/stat")?)?.0)
}

/// Processor time of this process and of the children that it waited for.
pub fn own_and_children_cpu_seconds() -> Result<f64> {
    let (own, children) = cpu_seconds(&std::fs::read_to_string("/proc/self/stat")?)?;
    Ok(own + children)
}

/// Processor time of a process, and of the children that it waited for.
fn cpu_seconds(stat: &str) -> Result<(f64, f64)> {
    // The name in parentheses may hold anything; utime, stime, cutime and cstime are the 12th to 15th fields behind it.
    let (_, fields) = stat.rsplit_once(')').context("stat names the program")?;
    let ticks = |index: usize| -> Result<f64> {
        Ok(fields.split_whitespace().nth(index).context("stat has all its fields")?.parse()?)
    };
    let per_second = ticks_per_second()?;
    Ok(((ticks(11)? + ticks(12)?) / per_second, (ticks(13)? + ticks(14)?) / per_second))
}

fn ticks_per_second() -> Result<f64> {
    Ok(sysconf(SysconfVar::CLK_TCK)?.context("the kernel counts ticks")? as f64)
}

/// Resident memory of this process.
pub fn own_rss_mib() -> Result<f64> {
    Ok(usage(std::process::id())?.rss_mib)
}

fn usage(id: u32) -> Result<Usage> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let mib = |name: &str| -> Result<f64> {
        let line =
            status.lines().find_map(|line| line.strip_prefix(name)).context("status has all its lines")?;
        Ok(line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    };
    let (cpu_seconds, children_cpu_seconds) = cpu_seconds(&stat)?;
    let (rss_mib, peak_rss_mib) = (mib("VmRSS")?, mib("VmHWM")?);
    Ok(Usage { cpu_seconds, children_cpu_seconds, rss_mib, peak_rss_mib })
}

/// Lets this process and those it starts open as many files as the system allows, which must be `needed` at least.
pub fn raise_open_files(needed: u64) -> Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if hard < needed {
        bail!(
            "{needed} open files are needed and only {hard} are allowed; raise the hard limit (ulimit -Hn)"
        );
    }
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}

/// The binary under test: `TEPUI_BIN`, or the one in the directory of the running program or above it.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("TEPUI_BIN") {
        return Ok(path.into());
    }
    let own = std::env::current_exe().context("a running program has a path")?;
    let found =
        own.ancestors().skip(1).take(2).map(|folder| folder.join("tepui")).find(|path| path.is_file());
    found.context(
        "the tepui binary is not there; build it first: cargo build --profile dist (or cargo build for tests)",
    )
}
