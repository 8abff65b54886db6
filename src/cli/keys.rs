//! `worca keys …`: serve the key service, and look after what is saved in it. No key is ever an argument.

use std::io::{IsTerminal as _, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroize as _;

use crate::cli::text::{note, print};
use crate::failure::{Exit, Explain, Failure};
use crate::home::Home;
use crate::ids::PersonId;
use crate::keys::credential::{self, CheckCredentialError, Kind};
use crate::keys::serve::{Limits, ServeError, Service, Settings};
use crate::keys::slot::{Origin, Slot, SlotName, Slots};
use crate::keys::vault::{self, Vault, VaultKey};
use crate::secret::Secret;

/// Serve model keys to agents as short-lived passes, and save the keys
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  worca keys put anthropic --vault-key-file vault_key < key.txt")]
pub struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Serve passes to core and models to agents, until told to end
    #[command(
        after_help = "Example:\n  worca keys serve --listen 127.0.0.1:4318 --control-file control --vault-key-file vault_key"
    )]
    Serve(ServeArgs),
    /// Save a key, read from the standard input, in place of the one that was there
    #[command(after_help = "Example:\n  worca keys put anthropic --vault-key-file vault_key < key.txt")]
    Put(PutArgs),
    /// List what is saved: never a key, at most its last four characters
    #[command(after_help = "Example:\n  worca keys list --vault-key-file vault_key --json")]
    List(ListArgs),
    /// Remove a saved key
    #[command(after_help = "Example:\n  worca keys remove anthropic --vault-key-file vault_key")]
    Remove(RemoveArgs),
    /// Change the vault key, and seal everything that is saved with the new one
    ///
    /// A service that runs goes on without a pause. Killed at any moment, it loses nothing: call it again.
    #[command(after_help = "Example:\n  worca keys rotate --vault-key-file vault_key")]
    Rotate(RotateArgs),
}

#[derive(Debug, Args)]
struct VaultArgs {
    /// The folder with the vault [default: `keys` in Worca's home]
    #[arg(long, value_name = "DIR", env = "WORCA_KEYS_HOME")]
    data: Option<PathBuf>,
    /// The file with the key that seals the vault: 32 bytes in base64, private to its owner
    #[arg(long, value_name = "FILE", env = "WORCA_VAULT_KEY_FILE")]
    vault_key_file: PathBuf,
}

impl VaultArgs {
    fn folder(&self) -> Result<PathBuf, Failure> {
        match &self.data {
            Some(folder) => Ok(folder.clone()),
            None => Ok(Home::find()?.keys()),
        }
    }
    fn open(&self) -> Result<Vault, Failure> {
        Ok(Vault::open(&self.folder()?, VaultKey::read(&self.vault_key_file)?)?)
    }
}

/// Where the box mounts what its owner has written for the key service.
const SETTINGS: &str = "/etc/worca/keys";

/// The file that was named, else the one of this name in the settings of the box, where it is there. A variable that is
/// set to nothing is not set.
fn settings_file(named: Option<&Path>, name: &str) -> Option<PathBuf> {
    let usual = || Some(Path::new(SETTINGS).join(name)).filter(|file| file.is_file());
    named.filter(|file| !file.as_os_str().is_empty()).map(Path::to_owned).or_else(usual)
}

#[derive(Debug, Args)]
struct SlotArgs {
    /// The slots file: where slots go that are not built in, and other places for those that are
    /// [default: /etc/worca/keys/slots.yaml, where it is there]
    #[arg(long = "slots", value_name = "FILE", env = "WORCA_SLOTS_FILE")]
    slots_file: Option<PathBuf>,
    /// Where the `anthropic` slot goes, whatever the slots file says [default: https://api.anthropic.com]
    #[arg(long, value_name = "ORIGIN", env = "WORCA_ANTHROPIC_ORIGIN")]
    anthropic_origin: Option<String>,
    /// Take an `http://` origin beyond this machine, over which keys go in the clear
    #[arg(long, env = "WORCA_DANGEROUSLY_PLAIN_ORIGIN")]
    dangerously_plain_origin: bool,
}

impl SlotArgs {
    fn file(&self) -> Option<PathBuf> {
        settings_file(self.slots_file.as_deref(), "slots.yaml")
    }
    fn anthropic(&self) -> Result<Option<Origin>, Failure> {
        let origin = self.anthropic_origin.as_deref().filter(|origin| !origin.is_empty());
        Ok(origin.map(|origin| Origin::parse(origin, self.dangerously_plain_origin)).transpose()?)
    }
    fn read(&self) -> Result<Slots, Failure> {
        Ok(Slots::read(self.file().as_deref(), self.anthropic()?)?)
    }
}

#[derive(Debug, Args)]
struct ServeArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", env = "WORCA_KEYS_LISTEN", default_value = "127.0.0.1:4318")]
    listen: SocketAddr,
    /// The file with the secret that core shows to the control part
    #[arg(long, value_name = "FILE", env = "WORCA_CONTROL_FILE")]
    control_file: PathBuf,
    #[command(flatten)]
    vault: VaultArgs,
    #[command(flatten)]
    slots: SlotArgs,
    /// A price table whose rows come before the built-in ones
    #[arg(long, value_name = "FILE", env = "WORCA_PRICES_FILE")]
    prices: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct PutArgs {
    /// The slot
    slot: SlotName,
    /// Whose key it is: nobody else's agents use it
    #[arg(long, value_name = "PERSON", default_value = "local")]
    person: PersonId,
    /// What it is, where its first characters do not say so
    #[arg(long, value_name = "api-key|subscription")]
    kind: Option<Kind>,
    #[command(flatten)]
    vault: VaultArgs,
    #[command(flatten)]
    slots: SlotArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Only of this slot
    #[arg(long, value_name = "SLOT")]
    slot: Option<SlotName>,
    /// Only of this person
    #[arg(long, value_name = "PERSON")]
    person: Option<PersonId>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    vault: VaultArgs,
}

#[derive(Debug, Args)]
struct RemoveArgs {
    /// The slot
    slot: SlotName,
    /// Whose key
    #[arg(long, value_name = "PERSON", default_value = "local")]
    person: PersonId,
    #[command(flatten)]
    vault: VaultArgs,
}

#[derive(Debug, Args)]
struct RotateArgs {
    /// Only seal anew: whoever holds the key's file has written both keys into it
    #[arg(long, hide = true)]
    seal_only: bool,
    #[command(flatten)]
    vault: VaultArgs,
}

/// A `worca keys` command cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
enum KeysCommandError {
    #[error("there is no slot `{slot}` that takes a key; there is {known}")]
    NoSuchSlot { slot: SlotName, known: String },
    #[error("no key is saved for slot `{0}`{whose}", whose = of(.1))]
    NothingSaved(SlotName, PersonId),
    #[error("the key is read from the standard input, which is a terminal here and would show it")]
    Terminal,
    #[error("the standard input cannot be read")]
    Input(#[source] std::io::Error),
    #[error("this process cannot listen for the signals that end it")]
    Signals(#[source] std::io::Error),
}

impl Explain for KeysCommandError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoSuchSlot { .. } => "unknown-slot",
            Self::NothingSaved(..) => "nothing-saved",
            Self::Terminal => "terminal",
            Self::Input(_) => "input-output",
            Self::Signals(_) => "signals",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Terminal => {
                Some("redirect a file, such as `worca keys put anthropic --vault-key-file FILE < key.txt`, or use `worca container login`".into())
            }
            Self::NothingSaved(..) => Some("`worca keys list` shows what is".into()),
            Self::NoSuchSlot { .. } | Self::Input(_) | Self::Signals(_) => None,
        }
    }
    fn exit(&self) -> Exit {
        match self {
            Self::NoSuchSlot { .. } | Self::Terminal => Exit::Usage,
            Self::NothingSaved(..) | Self::Input(_) | Self::Signals(_) => Exit::Failed,
        }
    }
}

/// Runs a `worca keys` command.
///
/// # Errors
/// What the command could not do.
pub async fn run(args: KeysArgs) -> Result<Exit, Failure> {
    match args.command {
        KeysCommand::Serve(args) => serve(args).await,
        KeysCommand::Put(args) => put(&args),
        KeysCommand::List(args) => list(&args),
        KeysCommand::Remove(args) => remove(&args),
        KeysCommand::Rotate(args) => rotate(&args),
    }
}

async fn serve(args: ServeArgs) -> Result<Exit, Failure> {
    let settings = Settings {
        listen: args.listen,
        data: args.vault.folder()?,
        slots_file: args.slots.file(),
        anthropic: args.slots.anthropic()?,
        control_file: args.control_file,
        vault_key_file: args.vault.vault_key_file,
        prices: settings_file(args.prices.as_deref(), "prices.yaml"),
        limits: Limits::default(),
    };
    // Before anything is read, so that an early signal ends it in order too.
    let told = told_to_end().map_err(KeysCommandError::Signals)?;
    let service = Service::start(settings).await?;
    let stop = CancellationToken::new();
    let telling = async {
        told.await;
        stop.cancel();
    };
    tokio::join!(service.run(stop.clone()), telling);
    Ok(Exit::Done)
}

#[cfg(unix)]
fn told_to_end() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut term, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn told_to_end() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

fn put(args: &PutArgs) -> Result<Exit, Failure> {
    crate::keys::harden().map_err(ServeError::Harden)?;
    let slots = args.slots.read()?;
    let endpoint = slots.get(args.slot.as_str()).filter(|slot| slot.takes_key()).and_then(Slot::endpoint);
    let endpoint = endpoint.ok_or_else(|| no_such_slot(&args.slot, &slots))?;
    let secret = read_secret()?;
    let kind = credential::check(&secret, &args.slot, args.kind)?;
    args.vault.open()?.put(&args.slot, &args.person, kind, endpoint, &secret)?;
    note(&format!("saved: slot {}{}, {kind}, for {endpoint}", args.slot, of(&args.person)));
    Ok(Exit::Done)
}

/// Names a person where it is not the only one that there is without a sign-in.
fn of(person: &PersonId) -> String {
    if *person == PersonId::local() { String::new() } else { format!(", person {person}") }
}

fn read_secret() -> Result<Secret, Failure> {
    let input = std::io::stdin().lock();
    if input.is_terminal() {
        return Err(KeysCommandError::Terminal.into());
    }
    // A line end or two beside the longest key; one byte more tells that it is longer.
    let most = credential::LONGEST as u64 + 3;
    let mut bytes = Vec::new();
    let read = input.take(most).read_to_end(&mut bytes);
    let secret = match read {
        Ok(_) => std::str::from_utf8(&bytes).map(|text| Secret::new(text.to_owned())).map_err(|_| ()),
        Err(error) => return Err(KeysCommandError::Input(error).into()),
    };
    let full = bytes.len() as u64 == most;
    bytes.zeroize();
    match secret {
        _ if full => Err(CheckCredentialError::Long.into()),
        Ok(secret) => Ok(secret),
        Err(()) => Err(CheckCredentialError::Characters.into()),
    }
}

fn no_such_slot(slot: &SlotName, slots: &Slots) -> KeysCommandError {
    let known: Vec<String> = slots
        .iter()
        .filter(|slot| slot.takes_key() && slot.endpoint().is_some())
        .map(|slot| format!("`{}`", slot.name))
        .collect();
    KeysCommandError::NoSuchSlot { slot: slot.clone(), known: known.join(", ") }
}

fn list(args: &ListArgs) -> Result<Exit, Failure> {
    let mut listed = args.vault.open()?.list()?;
    listed.retain(|key| {
        args.slot.as_ref().is_none_or(|slot| slot.as_str() == key.slot)
            && args.person.as_ref().is_none_or(|person| person.as_str() == key.person)
    });
    let mut text = String::new();
    if args.json {
        text = serde_json::json!({ "version": 1, "keys": listed }).to_string();
        text.push('\n');
    } else if listed.is_empty() {
        note("no key is saved");
    } else {
        let row = |cells: [&str; 6]| {
            let [slot, person, kind, last, added, used] = cells;
            format!("{slot:<12} {person:<10} {kind:<13} {last:<9} {added:<21} {used}").trim_end().to_owned()
                + "\n"
        };
        text.push_str(&row(["SLOT", "PERSON", "KIND", "LAST FOUR", "ADDED", "LAST USED"]));
        for key in &listed {
            let last = key.last_four.as_deref().unwrap_or("-");
            let used = key.last_used.as_deref().unwrap_or("never");
            text.push_str(&row([&key.slot, &key.person, &key.kind, last, &key.added, used]));
        }
    }
    print(&text)?;
    Ok(Exit::Done)
}

fn remove(args: &RemoveArgs) -> Result<Exit, Failure> {
    if !args.vault.open()?.remove(&args.slot, &args.person)? {
        return Err(KeysCommandError::NothingSaved(args.slot.clone(), args.person.clone()).into());
    }
    note(&format!("removed: slot {}{}", args.slot, of(&args.person)));
    Ok(Exit::Done)
}

fn rotate(args: &RotateArgs) -> Result<Exit, Failure> {
    crate::keys::harden().map_err(ServeError::Harden)?;
    let done = vault::rotate(&args.vault.folder()?, &args.vault.vault_key_file, !args.seal_only)?;
    let keys = match done.keys {
        1 => "1 saved key is".to_owned(),
        many => format!("{many} saved keys are"),
    };
    note(&format!("rotated: {keys} sealed with a new vault key"));
    Ok(Exit::Done)
}
