//! The meter: what a call asks for, what it used, and what that costs. It looks at bytes on their way and changes,
//! delays and keeps none of them.

mod counted;
mod prices;
mod request;
mod scan;
mod sse;
mod watch;

pub(super) use request::{RequestScan, UnclearError};
pub(super) use watch::{End, Watch};

pub use counted::{Asked, Counted};
pub use prices::{Prices, ReadPricesError};

#[cfg(test)]
mod tests;
