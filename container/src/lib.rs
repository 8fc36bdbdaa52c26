//! Containers: launcher, fetcher
