//! What core's runs stand on, found and checked at start: git, the key service's control secret, the person
//! whose name the commits bear, the folders that are mounted.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::failure::{Exit, Explain, Failure};
use crate::git::{Git, Person};
use crate::home::Home;
use crate::keys::client::KeysClient;
use crate::keys::secret_file;
use crate::runs::{Reach, Runs, Settings};
use crate::store::Store;

/// What core is told about its runs.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// Its folder.
    pub home: Home,
    /// Where the key service listens, for core and for agents.
    pub keys_url: String,
    /// The file of the secret for the key service's control part.
    pub control_file: Option<PathBuf>,
    /// Claude Code: a name that `PATH` holds, or a path.
    pub claude: OsString,
    /// Whose name the commits bear where a repository names nobody.
    pub author: (Option<String>, Option<String>),
    /// The mounted folders; any folder may be worked on when they are not given.
    pub projects: Option<Vec<PathBuf>>,
    /// Where keys are looked for before each start of an agent.
    pub reach: Reach,
    /// Files that are closed to every agent.
    pub protected: Vec<PathBuf>,
    /// The port that core listens on.
    pub listen_port: Option<u16>,
}

/// Core's runs cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// Without the secret core gets no pass.
    #[error("no control file is set, so core could not ask the key service for a pass")]
    NoControlFile,
    /// Not a list.
    #[error("`WORCA_PROJECTS` is not a JSON list of absolute paths")]
    Projects,
}

impl Explain for AssembleError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoControlFile => "control-file-unset",
            Self::Projects => "projects-invalid",
        }
    }
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoControlFile => {
                "give `--control-file` the file that `worca keys serve` was given; in a box \
                                    `worca container up` sets it"
                    .into()
            }
            Self::Projects => "`worca container up` writes it; take it out of your own files".into(),
        })
    }
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// Sets the runs up and takes over those of an earlier core.
///
/// # Errors
/// When a part is missing or wrong. A key service that is out of reach is none: each run asks for it.
pub async fn runs(settings: RunSettings, store: Store) -> Result<Runs, Failure> {
    let control = settings.control_file.ok_or(AssembleError::NoControlFile)?;
    let control = secret_file::read(&control, "the control secret")?;
    let keys = KeysClient::new(&settings.keys_url, &control)?;
    let git = Git::find().await?;
    let person = match settings.author {
        (Some(name), Some(email)) if !name.is_empty() && !email.is_empty() => {
            Some(Person::new(&name, &email)?)
        }
        _ => None,
    };
    let keys_port = url::Url::parse(&settings.keys_url).ok().and_then(|url| url.port_or_known_default());
    let settings = Settings {
        home: settings.home,
        store,
        git,
        keys,
        claude: settings.claude,
        person,
        mounted: settings.projects,
        protected: settings.protected,
        reach: settings.reach,
        keys_port,
        listen_port: settings.listen_port,
    };
    Ok(Runs::start(settings).await?)
}

/// The mounted folders that a JSON list names; none are mounted when it is not given.
///
/// # Errors
/// When it is no such list.
pub fn mounted(text: Option<&str>) -> Result<Option<Vec<PathBuf>>, AssembleError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    let paths: Vec<PathBuf> = serde_json::from_str(text).map_err(|_| AssembleError::Projects)?;
    if paths.iter().any(|path| path.is_relative()) {
        return Err(AssembleError::Projects);
    }
    Ok(Some(paths))
}
