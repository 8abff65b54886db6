//! A set without a run: the policy by which one call can be judged to see what would come of it.

use std::path::{Path, PathBuf};

use super::GuardrailSet;
use crate::guardrails::{POLICY_VERSION, Policy};

impl GuardrailSet {
    /// The policy that the hook of a run would go by, but for the run's own folders, which are not there. `host` is the
    /// process id that no line may signal.
    pub fn policy_without_run(
        &self,
        worca_home: &Path,
        user_home: Option<PathBuf>,
        host: Option<u32>,
    ) -> Policy {
        Policy {
            version: POLICY_VERSION,
            set: self.name.clone(),
            closed: vec!["/run/secrets".into(), worca_home.to_owned()],
            open: Vec::new(),
            rules: self.rules.clone(),
            deny_undecided: self.deny_undecided,
            host,
            homes: user_home.into_iter().collect(),
        }
    }

    /// The set as a document of its own, with all that it extends in it.
    pub fn to_document(&self) -> super::Document {
        use crate::guardrails::RuleKind;
        let of = |kind: RuleKind| {
            self.rules.iter().filter(|rule| rule.kind == kind).map(|rule| rule.pattern.clone()).collect()
        };
        super::Document {
            name: self.name.clone(),
            description: None,
            extends: None,
            honor_project_rules: self.honor_project_rules,
            deny: super::Deny {
                undecided: self.deny_undecided,
                commands: of(RuleKind::Commands),
                tools: of(RuleKind::Tools),
                paths: of(RuleKind::Paths),
            },
            environment: self.environment.clone(),
            confine: super::ConfineLimits {
                filesystem: Some(self.confine.filesystem),
                tcp: self.confine.tcp.clone(),
                signals: None,
            },
            require: super::Require { kernel: self.require_kernel },
        }
    }
}
