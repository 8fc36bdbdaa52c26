//! Every kind of endpoint that the agent answers. Paths are in `routes`, access rules in `access`.

use tepui_http::MetricsForm;
use tepui_http::files::Verb;

use crate::statistics::View;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Executor,
    Operator,
    State,
    Usage(View),
    Metrics(MetricsForm),
    LoggingToggle,
    SystemStats,
    Flags,
    Health,
    Help,
    Version,
    Profiler,
    Files(Verb),
    ContainerizerDebug,
    VolumeDrivers,
}
