//! Scripts: what happens to an agent, line by line, and everything it records (`=`) and makes visible.

mod driver;
mod life;
