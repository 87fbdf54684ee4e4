//! Certificates that see to themselves: made, shared by all replicas, trusted, and replaced in time.

mod identity;
mod keeper;
mod plan;
mod secret;
mod served;

pub use self::identity::{Identity, IdentityError};
pub use self::keeper::{Keeper, KeeperError, Places};
pub use self::plan::{Shared, Step, Timing, step};
pub use self::served::Served;
