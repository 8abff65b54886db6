//! Settings that are changed while core runs: a word and its value. What they mean is not known here.

use rusqlite::{OptionalExtension as _, params};

use super::{Store, StoreError};
use crate::clock::Millis;

impl Store {
    /// The stored value of a setting; `None` when nobody has set it.
    ///
    /// # Errors
    /// When the database does not give it.
    pub async fn setting(&self, key: &'static str) -> Result<Option<String>, StoreError> {
        self.read(move |connection| {
            let select = "SELECT value FROM settings WHERE key = ?1";
            Ok(connection.query_row(select, params![key], |row| row.get(0)).optional()?)
        })
        .await
    }

    /// Stores the value of a setting.
    ///
    /// # Errors
    /// When the database does not take it; then the old value holds.
    pub async fn set_setting(&self, key: &'static str, value: String) -> Result<(), StoreError> {
        self.write(move |tx| {
            tx.execute(
                "INSERT INTO settings (key, value, changed_at) VALUES (?1, ?2, ?3)
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value, changed_at = excluded.changed_at",
                params![key, value, Millis::now().0],
            )?;
            Ok(())
        })
        .await
    }
}
