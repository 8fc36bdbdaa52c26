//! The flags of `tepui agent` about resources that are given out twice: to whom they belong, and to borrowers.
//!
//! v1 loads estimators and controllers as modules; here they are built in, under the parameter names of v1's own.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use tepui_shell_agent::{Config, Estimator, QosController, fixed_estimator};

use super::value;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct OversubscriptionFlags {
    /// How long borrowers of reserved resources may take to end when the owner takes these back.
    #[arg(long, value_parser = value::duration, default_value = "5secs")]
    pub slack_eviction_grace: Duration,
    /// What is offered again as revocable: nothing (`noop`), the same always (`fixed`), or what tasks leave unused (`usage`).
    #[arg(long, default_value = "noop", value_parser = ["noop", "fixed", "usage"])]
    pub resource_estimator: String,
    /// What the estimator `fixed` finds: `cpus:4;mem:1024`.
    #[arg(long)]
    pub fixed_estimator_resources: Option<String>,
    /// Let the estimator `usage` find memory too, not only cpus.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub usage_estimator_memory: bool,
    /// How long the estimator `usage` watches a task before it finds anything of it.
    #[arg(long, value_parser = value::duration, default_value = "1mins")]
    pub usage_estimator_watch: Duration,
    /// How often an estimate is made.
    #[arg(long, value_parser = value::duration, default_value = "15secs")]
    pub oversubscribed_resources_interval: Duration,
    /// When revocable tasks are ended: never (`noop`), by load average (`load`), or by waiting time (`pressure`).
    #[arg(long, default_value = "noop", value_parser = ["noop", "load", "pressure"])]
    pub qos_controller: String,
    /// How far corrections are apart at least.
    #[arg(long, value_parser = value::duration, default_value = "0ns")]
    pub qos_correction_interval_min: Duration,
    /// The controller `load` acts above this average of five minutes.
    #[arg(long)]
    pub load_threshold_5min: Option<f64>,
    /// The controller `load` acts above this average of fifteen minutes.
    #[arg(long)]
    pub load_threshold_15min: Option<f64>,
    /// The controller `pressure` acts if tasks wait for a cpu more than this part of the time, in percent.
    #[arg(long, default_value_t = 60.0)]
    pub pressure_threshold_cpu: f64,
    /// The controller `pressure` acts if tasks wait for memory more than this part of the time, in percent.
    #[arg(long, default_value_t = 10.0)]
    pub pressure_threshold_memory: f64,
}

impl OversubscriptionFlags {
    /// Sets what the flags say.
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
