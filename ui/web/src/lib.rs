//! Operator pages
