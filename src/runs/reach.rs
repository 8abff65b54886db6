//! Keys in reach of agents: where this core looks for them, before it starts and before each start of an agent, what
//! the kernel closes of what is found, and what a person is told.

use std::path::{Path, PathBuf};

use super::Inner;
use super::guard::GuardError;
use super::worktree::Worktree;
use crate::failure::Explain as _;
use crate::findings::{Check, Finding};
use crate::home::Home;
use crate::keys::reach::{self, Closes, KeyInReach, Surroundings};
use crate::spawn;
use crate::store::Run;

/// Where a core looks for keys. The default looks nowhere.
#[derive(Debug, Clone, Default)]
pub struct Reach(Option<Places>);

#[derive(Debug, Clone)]
struct Places {
    worca_home: Option<PathBuf>,
    /// The mounted projects, in a box.
    projects: Option<Vec<PathBuf>>,
    /// Worca's own secrets.
    ours: Vec<PathBuf>,
    closes: Closes,
}

impl Reach {
    /// `projects`: the mounted projects, in a box; `ours`: the core token, the control secret; `close_sign_ins`:
    /// sign-ins in the home of this process are closed to agents and refuse nothing. In a box none may be there.
    pub fn of_this_process(
        worca_home: Option<&Path>,
        projects: Option<Vec<PathBuf>>,
        ours: Vec<PathBuf>,
        close_sign_ins: bool,
    ) -> Self {
        let closes = match close_sign_ins {
            _ if projects.is_some() || !spawn::kernel_support().files => Closes::Nothing,
            true => Closes::Home,
            false => Closes::Machine,
        };
        Self(Some(Places { worca_home: worca_home.map(Path::to_owned), projects, ours, closes }))
    }

    /// Looks, and gives the files that are to be closed to every agent. It blocks.
    ///
    /// # Errors
    /// When a key is in reach: with every place.
    pub fn look(&self) -> Result<Vec<PathBuf>, KeyInReach> {
        let Some(places) = &self.0 else { return Ok(Vec::new()) };
        let around = Surroundings::of_this_process(
            places.worca_home.as_deref(),
            places.projects.as_deref(),
            &places.ours,
        );
        reach::look(&around).judge(places.closes)
    }
}

impl Inner {
    /// Looks again, for a start of an agent.
    pub(super) async fn keys_in_reach(&self) -> Result<Vec<PathBuf>, GuardError> {
        let reach = self.settings.reach.clone();
        let looking = tokio::task::spawn_blocking(move || reach.look());
        looking.await.map_err(|_| GuardError::Ending)?.map_err(GuardError::KeyInReach)
    }

    /// What a person should know of keys in the project itself.
    pub(super) async fn keys_in_project(&self, run: &Run, worktree: &Worktree) -> Vec<String> {
        let folders = [("the branch", worktree.tree()), ("the checkout", run.checkout.clone().into())];
        let looking = tokio::task::spawn_blocking(move || reach::in_project(&folders));
        looking.await.unwrap_or_default()
    }
}

/// What `worca serve` would say here, with its variables.
pub(super) fn checks(home: Option<&Home>) -> Vec<Check> {
    const NAME: &str = "keys";
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let projects = named("WORCA_PROJECTS").and_then(|list| serde_json::from_str(list.to_str()?).ok());
    let ours =
        ["WORCA_CONTROL_FILE", "WORCA_CORE_TOKEN_FILE"].into_iter().filter_map(named).map(PathBuf::from);
    let close = named("WORCA_CLOSE_SIGN_INS").is_some_and(|value| value != "0" && value != "false");
    let reach = Reach::of_this_process(home.map(Home::path), projects, ours.collect(), close);
    let check = |finding, sentence, remedy| Check { name: NAME, finding, sentence, remedy };
    match reach.look() {
        Ok(closed) if closed.is_empty() => {
            vec![check(Finding::Good, "no model or cloud key is in reach of agents".into(), None)]
        }
        Ok(closed) => closed
            .iter()
            .map(|path| {
                let place = reach::Place::File { path: path.clone(), line: None };
                check(
                    Finding::Note,
                    format!("{place} holds a key, and the kernel closes it to every agent"),
                    None,
                )
            })
            .collect(),
        Err(refused) => {
            let hint = refused.hint();
            let row = |finding: &reach::Finding| {
                check(Finding::Bad, format!("a key is in reach of agents: {finding}"), hint.clone())
            };
            refused.findings.iter().map(row).collect()
        }
    }
}
