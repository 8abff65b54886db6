//! The vault and its key belong together: a lost key is told before anything is made, never replaced in silence.

use std::path::PathBuf;

use super::{Job, KEYS};
use crate::container::boxes;
use crate::container::engine::Engine;
use crate::container::secrets::VAULT_KEY;
use crate::failure::{Exit, Explain, Failure};

/// The key of the vault is lost, and the vault is there.
#[derive(Debug, thiserror::Error)]
#[error("`{}` is lost, and the volume `{volume}` holds the keys that only it opens", file.display())]
pub struct KeyLost {
    /// The file that is not there.
    pub file: PathBuf,
    /// The volume that it belongs to.
    pub volume: String,
    /// The box.
    pub name: String,
}

impl Explain for KeyLost {
    fn code(&self) -> &'static str {
        "vault-key-lost"
    }
    fn hint(&self) -> Option<String> {
        let named = boxes::flag(&self.name);
        Some(format!(
            "put the file back from a backup; or give up the saved keys, and only them, with \
             `worca container up{named} --new-vault`, and sign in again with `worca container login{named}`"
        ))
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// Refuses when the vault is there and its key is not. With `anew` the vault is taken away first, with the container
/// that uses it; asking before that is the caller's duty.
///
/// # Errors
/// When the key is lost, or the engine refuses.
pub async fn check(job: &Job<'_>, engine: &Engine, anew: bool) -> Result<(), Failure> {
    let file = job.files.secrets().join(VAULT_KEY);
    // The usual case asks the engine nothing.
    if !anew && file.exists() {
        return Ok(());
    }
    let name = job.files.name();
    let volume = format!("{name}_vault");
    let found = engine.look(name).await?;
    super::same_home::check(job, &found.containers)?;
    if anew {
        super::same_home::check_volumes(job, &found.volumes)?;
    }
    if !found.volumes.iter().any(|one| one.ours && one.name == volume) {
        return Ok(());
    }
    if !anew {
        return Err(KeyLost { file, volume, name: name.to_owned() }.into());
    }
    for one in found.containers.iter().filter(|one| one.ours && one.service == KEYS) {
        engine.remove_container(&one.id, &one.name).await?;
    }
    engine.remove_volume(&volume).await?;
    job.report.done(&format!("volume {volume}"), "removed");
    Ok(())
}
