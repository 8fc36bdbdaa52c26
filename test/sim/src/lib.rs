//! A whole cluster from a seed
