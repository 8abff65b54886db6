//! `worca container login`: the person's side of a sign-in. What they type is never shown again.

use std::io::{IsTerminal as _, Read as _};

use clap::Args;
use console::Term;

use super::{print, say};
use crate::container::verbs::Job;
use crate::container::verbs::login::{self, Owner, Person};
use crate::failure::{Exit, Explain, Failure};
use crate::ids::PersonId;
use crate::keys::credential::{self, CheckCredentialError};
use crate::keys::slot::SlotName;
use crate::secret::Secret;

/// A key is a line; more is not one.
const KEY_BYTES: u64 = 16 * 1024;

/// Log Claude Code in, once, or save an API key
///
/// Without options it runs Claude Code's own token set-up: open the address, sign in, paste the code. The key service
/// keeps the token; the box never sees it.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  worca container login\n  worca container login --api-key < key.txt\n  worca container login --api-key --slot openrouter --person ada < key.txt"
)]
pub(super) struct LoginArgs {
    /// Save an API key instead: asked for without echo, or read from standard input
    #[arg(long, conflicts_with_all = ["list", "remove"])]
    api_key: bool,
    /// The slot that the API key is for [default: anthropic]
    #[arg(long, value_name = "SLOT", requires = "api_key")]
    slot: Option<SlotName>,
    /// Whose key it is, or is removed: nobody else's agents use it
    #[arg(long, value_name = "PERSON", default_value = "local", conflicts_with = "list")]
    person: PersonId,
    /// List what is saved
    #[arg(long, conflicts_with = "remove")]
    list: bool,
    /// Print JSON, with --list
    #[arg(long, requires = "list")]
    json: bool,
    /// Remove what is saved for a slot
    #[arg(long, value_name = "SLOT")]
    remove: Option<SlotName>,
}

/// The person cannot be asked.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("a sign-in needs a terminal, and there is none")]
    NoTerminal,
    #[error("no key was given")]
    NoKey,
    #[error("what was given does not begin as a key does")]
    Unlike,
    #[error("what was given is no key")]
    NotOne(#[source] CheckCredentialError),
    #[error("the key cannot be read")]
    Input(#[source] std::io::Error),
}

impl Explain for AskError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoTerminal => "login-no-terminal",
            Self::NoKey | Self::NotOne(_) | Self::Unlike => "login-no-key",
            Self::Input(_) => "login-input",
        }
    }
    fn hint(&self) -> Option<String> {
        let key = "save an API key from standard input: `worca container login --api-key < key.txt`";
        Some(match self {
            Self::NoTerminal => format!("run it in a terminal, or {key}"),
            Self::NotOne(_) | Self::Unlike => format!("copy the whole key, and nothing else; {key}"),
            Self::NoKey | Self::Input(_) => key.into(),
        })
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

pub(super) async fn run(job: &Job<'_>, args: LoginArgs) -> Result<Exit, Failure> {
    if args.list {
        let words: &[&str] = if args.json { &["list", "--json"] } else { &["list"] };
        print(login::keys_command(job, words).await?.trim_end())?;
        return Ok(Exit::Done);
    }
    if let Some(slot) = &args.remove {
        login::keys_command(job, &["remove", slot.as_str(), "--person", args.person.as_str()]).await?;
        say(&format!("what was saved for `{slot}` is gone"));
        return Ok(Exit::Done);
    }
    if args.api_key {
        let key = ask_key().await?;
        let slot = args.slot.unwrap_or_else(SlotName::anthropic);
        credential::check(&key, &slot, None).map_err(|error| match error {
            // That error's own sentence is about an option that this command does not have.
            CheckCredentialError::Unknown => AskError::Unlike,
            error => AskError::NotOne(error),
        })?;
        let owner = Owner { slot: slot.as_str(), person: args.person.as_str() };
        login::save_api_key(job, owner, &key).await?;
        say("the key is saved in the key service");
        return Ok(Exit::Done);
    }
    if !std::io::stdin().is_terminal() || !Term::stderr().is_term() {
        return Err(AskError::NoTerminal.into());
    }
    let _kept = Kept::take();
    say("starting Claude Code's token set-up");
    login::login(job, args.person.as_str(), &mut Here, told_to_stop()).await?;
    say("you are signed in; the token is saved in the key service");
    Ok(Exit::Done)
}

/// The terminal's settings, put back when this is dropped: a question that is broken off leaves its own behind.
struct Kept {
    #[cfg(unix)]
    settings: Option<rustix::termios::Termios>,
}

impl Kept {
    fn take() -> Self {
        Self {
            #[cfg(unix)]
            settings: rustix::termios::tcgetattr(std::io::stdin()).ok(),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(settings) = &self.settings {
            let _ =
                rustix::termios::tcsetattr(std::io::stdin(), rustix::termios::OptionalActions::Now, settings);
        }
    }
}

/// The person at this terminal.
struct Here;

impl Person for Here {
    fn show_address(&mut self, url: &str) {
        say("\nOpen this address in a browser, sign in, and copy the code that it shows:\n");
        let _ = print(url);
        say("");
    }
    async fn ask_code(&mut self) -> Option<Secret> {
        ask_hidden("Paste the code here (it is not shown): ").await.ok()
    }
}

async fn ask_key() -> Result<Secret, AskError> {
    let key = if std::io::stdin().is_terminal() {
        ask_hidden("API key (it is not shown): ").await.map_err(AskError::Input)?
    } else {
        let read = || {
            let mut text = String::new();
            std::io::stdin().take(KEY_BYTES).read_to_string(&mut text).map(|_| Secret::new(text))
        };
        tokio::task::block_in_place(read).map_err(AskError::Input)?
    };
    if key.is_empty() { Err(AskError::NoKey) } else { Ok(key) }
}

/// Asks without echo, on a thread of its own: a read of a terminal cannot be broken off, and Ctrl-C must end us.
async fn ask_hidden(question: &'static str) -> std::io::Result<Secret> {
    let (send, receive) = tokio::sync::oneshot::channel();
    let ask = move || {
        let terminal = Term::stderr();
        let _ = terminal.write_str(question);
        let _ = send.send(terminal.read_secure_line().map(Secret::new));
    };
    std::thread::Builder::new().name("question".into()).spawn(ask)?;
    receive.await.unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into()))
}

/// Ends when this process is told to.
async fn told_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        if let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
