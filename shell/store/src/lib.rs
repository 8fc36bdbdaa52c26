//! Where records become durable
