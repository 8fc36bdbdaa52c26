//! Real processes
