//! One run of git: a clean environment, no terminal, no shell, a time limit, an output limit, and an end with its
//! caller. It must never be handed core's own environment.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::GitError;

/// The oldest git that is taken: Debian 12's, which is in the image.
const OLDEST: (u32, u32) = (2, 39);
/// How long one git may run unless the caller says otherwise.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// How much one git may print unless the caller says otherwise, in bytes.
const OUTPUT_LIMIT: usize = 64 * 1024 * 1024;
/// How much of its standard error is read; the rest is thrown away.
const STDERR_LIMIT: usize = 16 * 1024;
/// What git needs of our environment. Nothing in it names a program, a repository or a setting of git.
const KEPT: &[&str] = &["PATH", "TMPDIR", "TMP", "TEMP", "SystemRoot", "SYSTEMROOT", "COMSPEC", "PATHEXT"];

/// The user's git program.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    version: (u32, u32),
}

impl Git {
    /// The first `git` on the search path.
    ///
    /// # Errors
    /// When there is none, it does not start, or it is too old.
    pub async fn find() -> Result<Self, GitError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let name = if cfg!(windows) { "git.exe" } else { "git" };
        let program = std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(name))
            .find(|program| program.is_file())
            .ok_or(GitError::NotFound)?;
        Self::at(&program).await
    }

    /// This program.
    ///
    /// # Errors
    /// When it does not start, is no git, or is too old.
    pub async fn at(program: &Path) -> Result<Self, GitError> {
        let candidate = Self { program: program.to_owned(), version: (0, 0) };
        let text = candidate.call("version").time_limit(Duration::from_secs(20)).text().await?;
        let found = text.trim().trim_start_matches("git version ").to_owned();
        let mut numbers = found.split('.').map(|part| part.parse::<u32>().ok());
        let version = match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(major), Some(minor)) => (major, minor),
            _ => return Err(GitError::Unexpected { command: "version".into(), expected: "a version" }),
        };
        if version < OLDEST {
            return Err(GitError::TooOld { found, needed: "2.39" });
        }
        Ok(Self { version, ..candidate })
    }

    /// The program's path.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Major and minor version.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Starts to describe one run of `git <subcommand>`.
    pub fn call(&self, subcommand: &str) -> Call {
        Call {
            program: self.program.clone(),
            subcommand: subcommand.to_owned(),
            before: Vec::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: None,
            input: Vec::new(),
            time_limit: TIME_LIMIT,
            output_limit: OUTPUT_LIMIT,
            cut: false,
            user_settings: false,
        }
    }
}

/// One run of git, not started yet. Dropping the future of [`Call::run`] ends git and what it started.
#[derive(Debug, Clone)]
#[must_use = "nothing runs before `run`"]
pub struct Call {
    program: PathBuf,
    subcommand: String,
    before: Vec<OsString>,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    folder: Option<PathBuf>,
    input: Vec<u8>,
    time_limit: Duration,
    output_limit: usize,
    cut: bool,
    user_settings: bool,
}

/// What a git that ended printed.
#[derive(Debug)]
pub struct Output {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Whether more came than was asked for (only with [`Call::cut_at`]).
    pub was_cut: bool,
    /// Its exit code; none when it was cut short.
    pub exit: Option<i32>,
    /// The first lines of its standard error, without credentials; empty when it had nothing to say.
    pub said: String,
}

impl Call {
    /// Adds one argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }
    /// Adds arguments.
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, arguments: I) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }
    /// Sets one git setting for this run (`-c key=value`).
    pub fn setting(mut self, key_and_value: &str) -> Self {
        self.before.push("-c".into());
        self.before.push(key_and_value.into());
        self
    }
    /// Sets one environment variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }
    /// Sets environment variables.
    pub fn envs<I, K, V>(mut self, pairs: I) -> Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        self.environment
            .extend(pairs.into_iter().map(|(k, v)| (k.as_ref().to_owned(), v.as_ref().to_owned())));
        self
    }
    /// Runs in this folder.
    pub fn folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }
    /// Feeds this to its standard input.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self
    }
    /// Lets it run this long.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }
    /// Fails when it prints more than this.
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.output_limit = bytes;
        self
    }
    /// Takes this much of what it prints and ends it then.
    pub fn cut_at(mut self, bytes: usize) -> Self {
        self.output_limit = bytes;
        self.cut = true;
        self
    }
    /// Lets git read the person's own settings (`~/.gitconfig`, the system's): only to read a setting, never on a tree.
    pub(super) fn with_user_settings(mut self) -> Self {
        self.user_settings = true;
        self
    }

    /// Runs it and takes only exit code 0.
    ///
    /// # Errors
    /// See [`GitError`].
    pub async fn run(self) -> Result<Output, GitError> {
        let subcommand = self.subcommand.clone();
        let output = self.run_any().await?;
        if output.exit == Some(0) || output.was_cut {
            return Ok(output);
        }
        Err(GitError::Failed { command: subcommand, stderr: output.said, exit: output.exit })
    }

    /// Runs it; exit code 1 means no, 0 means yes.
    ///
    /// # Errors
    /// See [`GitError`]; every other exit code is one.
    pub async fn yes_or_no(self) -> Result<bool, GitError> {
        let subcommand = self.subcommand.clone();
        let output = self.run_any().await?;
        match output.exit {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            exit => Err(GitError::Failed { command: subcommand, stderr: output.said, exit }),
        }
    }

    /// Runs it and gives its standard output as text.
    ///
    /// # Errors
    /// See [`GitError`]; also when the output is not UTF-8.
    pub async fn text(self) -> Result<String, GitError> {
        let command = self.subcommand.clone();
        let output = self.run().await?;
        String::from_utf8(output.stdout).map_err(|_| GitError::Unexpected { command, expected: "UTF-8 text" })
    }

    async fn run_any(self) -> Result<Output, GitError> {
        let limit = self.time_limit;
        let command = self.subcommand.clone();
        match tokio::time::timeout(limit, self.run_to_end()).await {
            Ok(result) => result,
            Err(_) => Err(GitError::TimedOut { command, limit }),
        }
    }

    async fn run_to_end(self) -> Result<Output, GitError> {
        let start = |source| GitError::Start { program: self.program.clone(), source };
        let mut child = self.command().spawn().map_err(start)?;
        let group = Group::of(&child);
        let mut stdin = child.stdin.take();
        let feed = async {
            if let Some(mut pipe) = stdin.take() {
                // Git may end without reading all of it; what it says about that is in its exit code.
                let _ = pipe.write_all(&self.input).await;
                let _ = pipe.shutdown().await;
            }
        };
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let read_out = async {
            let read = read_up_to(stdout, self.output_limit).await;
            if matches!(&read, Ok((_, true))) {
                group.end();
            }
            read
        };
        let ((), out, err) = tokio::join!(feed, read_out, read_and_drain(stderr, STDERR_LIMIT));
        let (stdout, was_cut) = out.map_err(start)?;
        let stderr = err.map_err(start)?;
        let status = child.wait().await.map_err(start)?;
        group.is_over();
        if was_cut && !self.cut {
            return Err(GitError::TooMuchOutput { command: self.subcommand, limit: self.output_limit });
        }
        let exit = if was_cut { None } else { status.code() };
        Ok(Output { stdout, was_cut, exit, said: first_lines(&stderr) })
    }

    fn command(&self) -> tokio::process::Command {
        #[expect(clippy::disallowed_methods, reason = "this is the one place that starts the user's git")]
        let mut command = tokio::process::Command::new(&self.program);
        command.env_clear();
        for name in KEPT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if self.user_settings {
            for name in ["HOME", "XDG_CONFIG_HOME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH"] {
                if let Some(value) = std::env::var_os(name) {
                    command.env(name, value);
                }
            }
        } else {
            let nothing = if cfg!(windows) { "NUL" } else { "/dev/null" };
            command
                .env("GIT_CONFIG_GLOBAL", nothing)
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("GIT_ATTR_NOSYSTEM", "1");
        }
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_PAGER", "cat")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_LITERAL_PATHSPECS", "1")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .args(&self.before)
            .arg(&self.subcommand)
            .args(&self.arguments)
            .stdin(if self.input.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        #[cfg(unix)]
        command.process_group(0);
        command
    }
}

/// The process group of a running git; dropped before [`Group::is_over`], it ends the whole group.
struct Group(AtomicI32);

impl Group {
    fn of(child: &tokio::process::Child) -> Self {
        Self(AtomicI32::new(child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or(0)))
    }
    /// Ends the group. The leader is not waited for yet, so the number is still its own.
    fn end(&self) {
        #[cfg(unix)]
        if let Some(group) = rustix::process::Pid::from_raw(self.0.load(Ordering::Relaxed)) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
    /// The leader was waited for: the number may now be somebody else's.
    fn is_over(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads until the end or the limit; the flag says that there was more.
async fn read_up_to(pipe: Option<impl AsyncRead + Unpin>, limit: usize) -> std::io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(limit as u64 + 1).read_to_end(&mut bytes).await?;
    }
    let more = bytes.len() > limit;
    bytes.truncate(limit);
    Ok((bytes, more))
}

/// Reads the first bytes and throws the rest away, so that the writer never stands still.
async fn read_and_drain(pipe: Option<impl AsyncRead + Unpin>, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        (&mut pipe).take(limit as u64).read_to_end(&mut bytes).await?;
        tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    }
    Ok(bytes)
}

/// The first lines of what git said, as one line, with the credentials of every address taken out.
fn first_lines(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(4).collect();
    let line: String =
        lines.join(" / ").chars().filter(|character| !character.is_control()).take(600).collect();
    line.split(' ').map(without_credentials).collect::<Vec<_>>().join(" ")
}

/// An address without its `user:password@`.
pub(super) fn without_credentials(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let host_ends = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(host_ends);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}
