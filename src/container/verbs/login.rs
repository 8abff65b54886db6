//! `login`: Claude Code's own token set-up on a terminal of its own, and its token into the key service.
//!
//! The token passes through this process's memory and nowhere else: no argument, environment, file or log holds it.

use std::collections::HashMap;
use std::future::Future;
use std::num::NonZeroU16;
use std::time::Duration;

use super::{Job, KEYS, prepare};
use crate::container::engine::oneshot::{Dialog, OneShot};
use crate::container::engine::{Engine, EngineError};
use crate::container::files::{self, FileError};
use crate::failure::{Exit, Explain, Failure};
use crate::secret::Secret;

/// The slot that a sign-in is for, and an API key when no other is named.
pub const SLOT: &str = "anthropic";
/// Columns of the set-up's terminal: its address stands on one line then.
const COLUMNS: NonZeroU16 = NonZeroU16::MIN.saturating_add(499);
/// Rows of it: what it draws never scrolls away.
const ROWS: NonZeroU16 = NonZeroU16::MIN.saturating_add(59);
/// Seconds after which a set-up that nobody finishes ends by itself, also when this program was killed.
const LONGEST: u64 = 900;
/// How long the set-up may take to draw its address.
const FIRST: Duration = Duration::from_secs(60);
/// How long it may take to turn the code into a token.
const EXCHANGE: Duration = Duration::from_secs(90);
/// How long a pause shows that a drawing is finished.
const SETTLE: Duration = Duration::from_millis(300);
/// How long the key service may take to save a key.
const SAVE: Duration = Duration::from_secs(20);
/// The start of a token of a subscription.
const TOKEN: &str = "sk-ant-oat01-";
/// The shortest text after it that is a whole token.
const TOKEN_LENGTH: usize = 40;

/// Whoever sits in front of the terminal.
pub trait Person: Send {
    /// Shows the address that is to be opened in a browser.
    fn show_address(&mut self, url: &str);
    /// Asks for the code that the browser shows. `None` when they give up.
    fn ask_code(&mut self) -> impl Future<Output = Option<Secret>> + Send;
}

/// A sign-in did not end in a saved token.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file of the box.
    #[error(transparent)]
    File(#[from] FileError),
    /// Claude Code does not show an address.
    #[error("Claude Code's token set-up did not show a sign-in address; it showed: {0}")]
    NoAddress(String),
    /// Claude Code did not take the code.
    #[error("Claude Code's token set-up says: {0}")]
    Refused(String),
    /// It showed no token.
    #[error("Claude Code's token set-up ended without a token; it showed: {0}")]
    NoToken(String),
    /// The person gave up.
    #[error("the sign-in was broken off")]
    GivenUp,
    /// The key service did not take it.
    #[error("the key service did not save the key: {0}")]
    NotSaved(String),
    /// The key service did not do something else.
    #[error("the key service did not {what} what is saved: {words}")]
    NotDone {
        /// What it was to do.
        what: String,
        /// What it says.
        words: String,
    },
}

impl Explain for LoginError {
    fn code(&self) -> &'static str {
        match self {
            Self::Engine(error) => error.code(),
            Self::File(error) => error.code(),
            Self::NoAddress(_) => "login-no-address",
            Self::Refused(_) => "login-refused",
            Self::NoToken(_) => "login-no-token",
            Self::GivenUp => "login-given-up",
            Self::NotSaved(_) => "login-not-saved",
            Self::NotDone { .. } => "login-not-done",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Engine(error) => error.hint(),
            Self::File(error) => error.hint(),
            Self::GivenUp => Some("nothing was saved; start again with `worca container login`".into()),
            Self::NoAddress(_) | Self::NoToken(_) | Self::Refused(_) => Some(
                "nothing was saved; try again, or save an API key with `worca container login --api-key`"
                    .into(),
            ),
            Self::NotSaved(_) | Self::NotDone { .. } => {
                Some("`worca container logs keys` shows what the key service says".into())
            }
        }
    }
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

/// Signs in with a person, for whoever `whose` names. One at a time: another login on the same box is refused. When `stop` ends first, the
/// container and the address file are gone and nothing is saved.
///
/// # Errors
/// When the box is not up, another login runs, or the set-up or the key service fails.
pub async fn login(
    job: &Job<'_>,
    whose: &str,
    person: &mut impl Person,
    stop: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let engine = job.connect().await?;
    let keys = job.running(&engine, KEYS).await?;
    let _held = tokio::task::block_in_place(|| job.files.lock("login"))?;
    let environment = tokio::task::block_in_place(|| prepare::environment(job.host, &job.files))?;
    let user = prepare::user_in(&environment)?
        .map_or_else(|| "1000:1000".into(), |user| format!("{}:{}", user.uid, user.gid));
    let spec = set_up(job.files.name(), &keys.image, user);
    let address_file = job.files.login_url();
    let talk = async |dialog: Dialog| converse(dialog, person, &address_file).await;
    let token = engine.converse(&spec, stop, talk).await;
    let _ = std::fs::remove_file(&address_file);
    let token = token?.ok_or(LoginError::GivenUp)?;
    save(&engine, &keys.name, Owner { slot: SLOT, person: whose }, Some("subscription"), &token).await?;
    Ok(())
}

fn set_up(project: &str, image: &str, user: String) -> OneShot {
    // The size is set inside, before the program looks at it; `timeout` ends what a killed caller left behind.
    let script =
        format!("stty cols {COLUMNS} rows {ROWS}; exec timeout --foreground {LONGEST} claude setup-token");
    let memory = |size: &str| format!("mode=1777,size={size}");
    OneShot {
        project: project.to_owned(),
        task: "login".into(),
        image: image.to_owned(),
        argv: vec!["sh".into(), "-c".into(), script],
        environment: vec![
            "HOME=/home/worca".into(),
            "TERM=xterm-256color".into(),
            "BROWSER=/bin/true".into(),
        ],
        user,
        network: format!("{project}_out"),
        tmpfs: HashMap::from([("/home/worca".into(), memory("64m")), ("/tmp".into(), memory("64m"))]),
    }
}

async fn converse(
    mut dialog: Dialog,
    person: &mut impl Person,
    address_file: &std::path::Path,
) -> Result<Secret, LoginError> {
    let mut screen = Screen::new();
    let first = async {
        loop {
            if let Some(url) = screen.address() {
                return Ok(url);
            }
            match dialog.hear().await? {
                Some(bytes) => screen.draw(&bytes),
                None => return Err(LoginError::NoAddress(screen.words())),
            }
        }
    };
    let url = match tokio::time::timeout(FIRST, first).await {
        Ok(url) => url?,
        Err(_) => return Err(LoginError::NoAddress(screen.words())),
    };
    files::write_text(address_file, &format!("{url}\n"), true)?;
    person.show_address(&url);
    let code = {
        let asked = person.ask_code();
        tokio::pin!(asked);
        loop {
            tokio::select! {
                code = &mut asked => break code.filter(|code| !code.is_empty()).ok_or(LoginError::GivenUp)?,
                heard = dialog.hear() => match heard? {
                    Some(bytes) => screen.draw(&bytes),
                    None => return Err(LoginError::NoToken(screen.words())),
                },
            }
            // A callback in a browser on the same machine can finish it without a code.
            if let Some(token) = screen.token() {
                return Ok(token);
            }
        }
    };
    // Typed apart from the return key, or the set-up would take both for one pasted text.
    dialog.say(code.expose().as_bytes()).await?;
    settle(&mut dialog, &mut screen).await?;
    dialog.say(b"\r").await?;
    let token = async {
        loop {
            let more = settle(&mut dialog, &mut screen).await?;
            if let Some(token) = screen.token() {
                return Ok(token);
            }
            if let Some(refusal) = screen.refusal() {
                return Err(LoginError::Refused(refusal));
            }
            if !more {
                return Err(LoginError::NoToken(screen.words()));
            }
        }
    };
    match tokio::time::timeout(EXCHANGE, token).await {
        Ok(token) => token,
        Err(_) => Err(LoginError::NoToken(screen.words())),
    }
}

/// Hears until nothing new is drawn for a moment; half a token must not be taken for one. Gives whether it still runs.
async fn settle(dialog: &mut Dialog, screen: &mut Screen) -> Result<bool, EngineError> {
    loop {
        match tokio::time::timeout(SETTLE, dialog.hear()).await {
            Ok(heard) => match heard? {
                Some(bytes) => screen.draw(&bytes),
                None => return Ok(false),
            },
            Err(_) => return Ok(true),
        }
    }
}

/// Which key it is that is saved.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The slot that it is for.
    pub slot: &'a str,
    /// Whose it is.
    pub person: &'a str,
}

/// Saves a key through the key service's own command, whose standard input is the only place that it is in.
///
/// # Errors
/// When the key service's container is not there, or its command refuses.
pub async fn save(
    engine: &Engine,
    keys: &str,
    owner: Owner<'_>,
    kind: Option<&str>,
    key: &Secret,
) -> Result<(), LoginError> {
    let mut argv = vec!["worca", "keys", "put", owner.slot, "--person", owner.person];
    argv.extend(kind.into_iter().flat_map(|kind| ["--kind", kind]));
    let answer = engine.ask(keys, &argv, key.expose().as_bytes(), 64 * 1024, SAVE).await?;
    if answer.code == 0 { Ok(()) } else { Err(LoginError::NotSaved(words_of(&answer.err))) }
}

/// Saves an API key.
///
/// # Errors
/// When the box is not up, or the key service refuses the key.
pub async fn save_api_key(job: &Job<'_>, owner: Owner<'_>, key: &Secret) -> Result<(), Failure> {
    let engine = job.connect().await?;
    let keys = job.running(&engine, KEYS).await?;
    let _held = tokio::task::block_in_place(|| job.files.lock("login"))?;
    // Without a kind the key service judges by the key itself, so what is none is refused.
    Ok(save(&engine, &keys.name, owner, None, key).await?)
}

/// Runs `worca keys` with `arguments` in the key service and gives what it prints.
///
/// # Errors
/// When the box is not up, or the command refuses.
pub async fn keys_command(job: &Job<'_>, arguments: &[&str]) -> Result<String, Failure> {
    let engine = job.connect().await?;
    let keys = job.running(&engine, KEYS).await?;
    let argv: Vec<&str> = ["worca", "keys"].into_iter().chain(arguments.iter().copied()).collect();
    let answer = engine.ask(&keys.name, &argv, b"", 1024 * 1024, SAVE).await?;
    if answer.code != 0 {
        let what = arguments.first().copied().unwrap_or_default().to_owned();
        return Err(LoginError::NotDone { what, words: words_of(&answer.err) }.into());
    }
    Ok(String::from_utf8_lossy(&answer.out).into_owned())
}

/// Another program's complaint as one line, without anything that looks like a key.
fn words_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    // Its hint is for somebody inside.
    let text = text.split_once("\nhint:").map_or(&*text, |(before, _)| before);
    let words = text.split_whitespace().map(|word| if word.contains("sk-ant-") { "(a key)" } else { word });
    let text: String =
        words.collect::<Vec<_>>().join(" ").chars().filter(|c| !c.is_control()).take(400).collect();
    text.strip_prefix("error: ").map(str::to_owned).unwrap_or(text)
}

/// What the set-up has drawn. It draws by moving about, so only a whole terminal knows what stands there.
pub struct Screen {
    terminal: vt100::Parser,
}

impl Screen {
    /// An empty one.
    #[expect(clippy::new_without_default, reason = "a screen is made in one place, with its size")]
    pub fn new() -> Self {
        Self { terminal: vt100::Parser::new(ROWS, COLUMNS, 0) }
    }
    /// Draws.
    pub fn draw(&mut self, bytes: &[u8]) {
        self.terminal.process(bytes);
    }
    /// The sign-in address, once it stands there and the code is asked for.
    pub fn address(&self) -> Option<String> {
        let text = self.terminal.screen().contents();
        let asked = text.to_lowercase().contains("paste code");
        let url = text.split_whitespace().find(|word| word.starts_with("https://"))?;
        asked.then(|| url.to_owned())
    }
    /// The token, once it stands there whole.
    pub fn token(&self) -> Option<Secret> {
        let text = zeroize::Zeroizing::new(self.terminal.screen().contents());
        let (_, rest) = text.split_once(TOKEN)?;
        let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let rest: String = rest.chars().take_while(fits).collect();
        (rest.len() >= TOKEN_LENGTH).then(|| Secret::new(format!("{TOKEN}{rest}")))
    }
    /// What it says when it does not go on.
    pub fn refusal(&self) -> Option<String> {
        let text = self.terminal.screen().contents();
        let line = text.lines().find(|line| line.to_lowercase().contains("error:"))?;
        Some(words_of(line.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()).as_bytes()))
    }
    /// Its words, for an error.
    pub fn words(&self) -> String {
        let text = self.terminal.screen().contents();
        let plain = |c: char| c.is_alphanumeric() || c.is_ascii_punctuation() || c.is_whitespace();
        let text: String = text.chars().map(|c| if plain(c) { c } else { ' ' }).collect();
        let words = words_of(text.as_bytes());
        if words.is_empty() { "nothing".into() } else { words }
    }
}

#[cfg(test)]
mod tests;
