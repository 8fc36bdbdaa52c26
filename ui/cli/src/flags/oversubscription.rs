//! Flags of `tepui agent` for oversubscription.
//!
//! v1 loads estimators and controllers as modules; here they are built in, with the parameter names of v1.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use tepui_shell_agent::{Config, Estimator, QosController, fixed_estimator};

use super::value;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct OversubscriptionFlags {
    /// Grace period of borrowers when the owner reclaims lent resources, and of executors with a grace period of their own
    /// that a QoS controller preempts.
    #[arg(long, value_parser = value::duration, default_value = "5secs")]
    pub slack_eviction_grace: Duration,
    /// Estimator of revocable resources: `noop` (none), `fixed` (a constant) or `usage` (requested but
    /// unused).
    #[arg(long, default_value = "noop", value_parser = ["noop", "fixed", "usage"])]
    pub resource_estimator: String,
    /// Resources reported by the estimator `fixed`, as in `cpus:4;mem:1024`.
    #[arg(long)]
    pub fixed_estimator_resources: Option<String>,
    /// Include memory in the estimates of `usage`.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub usage_estimator_memory: bool,
    /// Time for which `usage` observes a task before its unused resources count.
    #[arg(long, value_parser = value::duration, default_value = "1mins")]
    pub usage_estimator_watch: Duration,
    /// Interval of estimates.
    #[arg(long, value_parser = value::duration, default_value = "15secs")]
    pub oversubscribed_resources_interval: Duration,
    /// Controller that evicts revocable tasks: `noop` (never), `load` (load average) or `pressure` (stall
    /// time).
    #[arg(long, default_value = "noop", value_parser = ["noop", "load", "pressure"])]
    pub qos_controller: String,
    /// Minimum interval between corrections.
    #[arg(long, value_parser = value::duration, default_value = "0ns")]
    pub qos_correction_interval_min: Duration,
    /// Load average over five minutes above which `load` evicts.
    #[arg(long)]
    pub load_threshold_5min: Option<f64>,
    /// Load average over fifteen minutes above which `load` evicts.
    #[arg(long)]
    pub load_threshold_15min: Option<f64>,
    /// Percentage of time stalled on cpu above which `pressure` evicts.
    #[arg(long, default_value_t = 60.0)]
    pub pressure_threshold_cpu: f64,
    /// Percentage of time stalled on memory above which `pressure` evicts.
    #[arg(long, default_value_t = 10.0)]
    pub pressure_threshold_memory: f64,
}

impl OversubscriptionFlags {
    /// Sets the options.
    pub fn set(&self, config: &mut Config) -> Result<()> {
        config.slack_eviction_grace = self.slack_eviction_grace;
        config.estimator = self.estimator()?;
        config.oversubscribed_resources_interval = self.oversubscribed_resources_interval;
        config.qos_controller = self.controller()?;
        config.qos_correction_interval_min = self.qos_correction_interval_min;
        Ok(())
    }

    fn estimator(&self) -> Result<Estimator> {
        match (self.resource_estimator.as_str(), &self.fixed_estimator_resources) {
            ("fixed", Some(resources)) => fixed_estimator(resources)
                .map_err(|error| anyhow::anyhow!("--fixed_estimator_resources: {error}")),
            ("fixed", None) => bail!("--resource_estimator=fixed needs --fixed_estimator_resources"),
            ("usage", _) => Ok(Estimator::Usage {
                compressible_only: !self.usage_estimator_memory,
                watch: self.usage_estimator_watch,
            }),
            _ => Ok(Estimator::Noop),
        }
    }

    fn controller(&self) -> Result<QosController> {
        let (five_minutes, fifteen_minutes) = (self.load_threshold_5min, self.load_threshold_15min);
        match self.qos_controller.as_str() {
            "load" if five_minutes.is_none() && fifteen_minutes.is_none() => {
                bail!("--qos_controller=load needs --load_threshold_5min or --load_threshold_15min")
            }
            "load" => Ok(QosController::Load { five_minutes, fifteen_minutes }),
            "pressure" => Ok(QosController::Pressure {
                cpu: self.pressure_threshold_cpu,
                memory: self.pressure_threshold_memory,
            }),
            _ => Ok(QosController::Noop),
        }
    }
}
