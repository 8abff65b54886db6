//! The labels that say whose a container, network or volume is: Compose's own, so that `docker compose` works on the
//! same project, and ours, without which nothing is ever touched.

use std::collections::HashMap;

/// The name of the box, on everything that it owns.
pub const BOX: &str = "io.worca.box";
/// The digest of what a network was made from.
pub const NETWORK_HASH: &str = "io.worca.network-hash";
/// The Compose project.
pub const PROJECT: &str = "com.docker.compose.project";
/// The service of a container.
pub const SERVICE: &str = "com.docker.compose.service";
/// The number of a container of its service; ours are all `1`.
pub const NUMBER: &str = "com.docker.compose.container-number";
/// `True` on a container that runs once.
pub const ONE_OFF: &str = "com.docker.compose.oneoff";
/// The digest of what a container was made from.
pub const CONFIG_HASH: &str = "com.docker.compose.config-hash";
/// The compose files, comma-separated.
pub const CONFIG_FILES: &str = "com.docker.compose.project.config_files";
/// The folder of the compose files.
pub const WORKING_DIR: &str = "com.docker.compose.project.working_dir";
/// The id of the image.
pub const IMAGE: &str = "com.docker.compose.image";
/// What it depends on, as `service:condition:restart`, comma-separated.
pub const DEPENDS_ON: &str = "com.docker.compose.depends_on";
/// The Compose version whose labels these are.
pub const VERSION: &str = "com.docker.compose.version";
/// The key of a network in the file.
pub const NETWORK: &str = "com.docker.compose.network";
/// The key of a volume in the file.
pub const VOLUME: &str = "com.docker.compose.volume";
/// The Compose release whose labels are written.
pub const COMPOSE_VERSION: &str = "2.26.1";

/// Whether something with these labels belongs to the box `name`: both labels must say so.
pub fn are_ours(labels: &HashMap<String, String>, name: &str) -> bool {
    let is = |key| labels.get(key).is_some_and(|value| value == name);
    is(BOX) && is(PROJECT)
}
