//! Endpoints, negotiation, streams
