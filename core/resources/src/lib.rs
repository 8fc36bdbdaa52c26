//! Resource algebra
