//! From "run this prompt" to a request for `spawn`: folders, files and flags of one start of Claude Code.
//! Never puts the prompt or the pass into an argument or a file.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::failure::Explain;
use crate::guardrails::{Compiled, Facts, INSTRUCTIONS_FILE, POLICY_FILE, SETTINGS_FILE};
use crate::secret::Secret;
use crate::spawn::SpawnRequest;

use super::ProjectText;

/// One start of Claude Code.
pub struct Launch {
    /// `claude`, or a path to it.
    pub program: OsString,
    /// The model's name as it was given; `None` leaves the choice to the program.
    pub model: Option<String>,
    /// The places of this start. In `folder` the files of [`Compiled`] are written (mode 0600), `home/.claude/` and
    /// the temporary folder are made; `worktree` is the working folder and must be there.
    pub facts: Facts,
    /// What the run's guardrail set came to for these facts.
    pub compiled: Compiled,
    /// Where the model is: the key service's slot.
    pub base_url: String,
    /// What the agent shows there.
    pub pass: Secret,
    /// The task. Goes to standard input.
    pub prompt: String,
    /// An earlier session of the same `folder` and `worktree` to go on with.
    pub resume: Option<String>,
    /// Further variables for the agent (the git identity).
    pub environment: Vec<(String, OsString)>,
}

/// The files of a start could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// A file or folder of the run.
    #[error("`{}` could not be written", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// From the system.
        #[source]
        source: std::io::Error,
    },
    /// The hook would not run, and the agent program takes a hook that does not run for consent.
    #[error("the hook's program `{}` is not there", .0.display())]
    NoHook(PathBuf),
    /// A model or session name that is not one.
    #[error("`{0}` is not a {1} name")]
    Name(String, &'static str),
}

impl Explain for PrepareError {
    fn code(&self) -> &'static str {
        match self {
            Self::Write { .. } => "agent-files",
            Self::NoHook(_) => "hook-missing",
            Self::Name(..) => "agent-name",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoHook(_) => {
                Some("the program was replaced or moved while it ran: restart `worca serve`".into())
            }
            _ => None,
        }
    }
}

impl Launch {
    /// Makes the run's folders and files and gives the request. Blocking: call it off the async threads.
    ///
    /// # Errors
    /// When a file cannot be written or a name has another form.
    pub fn prepare(self) -> Result<SpawnRequest, PrepareError> {
        let Self { facts, compiled, .. } = self;
        let config = facts.home.join(".claude");
        for folder in [&facts.folder, &facts.home, &config, &facts.temporary] {
            make_folder(folder)?;
        }
        if !facts.worca.is_file() {
            return Err(PrepareError::NoHook(facts.worca));
        }
        let [policy_file, settings_file, instructions_file] =
            [POLICY_FILE, SETTINGS_FILE, INSTRUCTIONS_FILE].map(|name| facts.folder.join(name));
        write(&policy_file, compiled.policy.to_json().as_bytes())?;
        write(&settings_file, compiled.settings.to_string().as_bytes())?;
        let project = ProjectText::read(&facts.worktree).map(|project| project.prompt());
        let instructions = [Some(compiled.preamble), project].into_iter().flatten().collect::<Vec<_>>();
        write(&instructions_file, instructions.join("\n").as_bytes())?;

        let mut arguments: Vec<OsString> =
            ["-p", "--output-format", "stream-json", "--verbose"].map(Into::into).into();
        // Joined by `=`: an empty argument of its own is easily lost, and this one is what keeps the repository out.
        arguments.extend(
            ["--setting-sources=", "--strict-mcp-config", "--permission-mode", "acceptEdits"].map(Into::into),
        );
        arguments.extend(["--settings".into(), settings_file.into_os_string()]);
        arguments.extend(["--append-system-prompt-file".into(), instructions_file.into_os_string()]);
        if let Some(model) = self.model {
            arguments.extend(["--model".into(), word(model, "model")?.into()]);
        }
        if let Some(session) = self.resume {
            arguments.extend(["--resume".into(), word(session, "session")?.into()]);
        }

        let mut environment = self.environment;
        let mut give = |name: &str, value: OsString| environment.push((name.to_owned(), value));
        give("ANTHROPIC_BASE_URL", self.base_url.into());
        give("ANTHROPIC_AUTH_TOKEN", self.pass.expose().into());
        give("CLAUDE_CONFIG_DIR", config.into_os_string());
        give("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into());
        give("DISABLE_AUTOUPDATER", "1".into());
        // For the same hook where it is called without a file (the image's managed settings).
        give("WORCA_HOOK_POLICY", policy_file.into_os_string());
        for (name, value) in compiled.environment {
            give(&name, value.into());
        }
        Ok(SpawnRequest {
            shim: None,
            program: self.program,
            arguments,
            directory: facts.worktree,
            home: facts.home,
            temporary: facts.temporary,
            environment,
            keep: compiled.keep,
            stdin: self.prompt.into_bytes(),
            kernel: compiled.kernel,
            trial: Some(compiled.trial),
        })
    }
}

/// Whether a text can stand where the program wants a name (of a model, of a session): it starts like a word, so
/// that it is never taken for a flag, and has at most 200 letters, digits and `-._:/@[]`.
pub fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/@[]".contains(&byte);
    let starts = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    starts && text.len() <= 200 && text.bytes().all(fits)
}

fn word(name: String, what: &'static str) -> Result<String, PrepareError> {
    if is_name(&name) { Ok(name) } else { Err(PrepareError::Name(name.chars().take(60).collect(), what)) }
}

fn make_folder(path: &Path) -> Result<(), PrepareError> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|source| PrepareError::Write { path: path.into(), source })
}

/// Writes it beside and moves it in, so that it is whole and follows no link that stands there.
fn write(path: &Path, bytes: &[u8]) -> Result<(), PrepareError> {
    let aside = path.with_extension("new");
    let attempt = || -> std::io::Result<()> {
        match std::fs::remove_file(&aside) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&aside)?.write_all(bytes)?;
        std::fs::rename(&aside, path)
    };
    attempt().map_err(|source| PrepareError::Write { path: path.into(), source })
}
