//! `rotate`: another vault key. The host alone writes the key's file, and the key service alone has the vault, so the
//! host adds the new key to the file, has the vault sealed with it, and takes the old key out of the file.

use super::{Job, login};
use crate::container::secrets::VAULT_KEY;
use crate::failure::Failure;
use crate::keys::vault::VaultKey;

/// Rotates the vault key of a box that is up. Broken off at any moment, the box opens its vault as before, and the next
/// call goes on from there.
///
/// # Errors
/// When the box is not up, the file cannot be written, or the key service does not seal its vault anew.
pub async fn rotate(job: &Job<'_>) -> Result<(), Failure> {
    let _held = tokio::task::block_in_place(|| job.hold())?;
    // A key service of an older program could not read a file with two keys.
    login::keys_command(job, &["rotate", "--help"]).await?;
    let file = job.files.secrets().join(VAULT_KEY);
    tokio::task::block_in_place(|| VaultKey::begin(&file))?;
    login::keys_command(job, &["rotate", "--seal-only"]).await?;
    Ok(tokio::task::block_in_place(|| VaultKey::finish(&file))?)
}
