//! Who is offered what
