//! What several test programs share.
#![allow(dead_code, reason = "each test program uses a part")]

pub mod model;
pub mod proc;

use std::time::{Duration, Instant};

/// How long a condition may take on a busy machine before a test gives up.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `look` gives something; says what was last seen otherwise.
pub async fn until<T, S: std::fmt::Debug>(what: &str, mut look: impl FnMut() -> Result<T, S>) -> T {
    let since = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if since.elapsed() > PATIENCE => {
                panic!("{what}: not within {PATIENCE:?}, last seen: {seen:?}")
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}
