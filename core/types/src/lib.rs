//! Ids, state tables, container operations and events
