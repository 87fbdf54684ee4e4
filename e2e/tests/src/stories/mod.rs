//! Stories that must end well on every release, with Tutti as the scheduler.

mod beside;
mod deploy;
mod embedded;
mod faults;
mod gangs;
mod kubectl;
mod minimum;
mod nodes;
mod scheduler;
mod silence;
