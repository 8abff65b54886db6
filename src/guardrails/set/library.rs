//! All sets: the tiers and the user's own, and what one comes to with all that it extends.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::document::{Document, DocumentError};
use super::{Confine, Environment, Filesystem, GuardrailSet, SetName, Tier};
use crate::failure::{Exit, Explain};
use crate::guardrails::{Rule, RuleKind};

/// How many sets may stand above each other.
const DEEPEST: usize = 16;
/// The most rules that a set may come to: with the longest patterns a policy file still fits its limit.
pub const MOST_RULES: usize = 2000;

/// Where a set comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It comes with Worca.
    Tier(Tier),
    /// The user's file.
    Own(PathBuf),
}

/// One set of the library, also one whose file is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name, or what stands in its place in the file's name.
    pub name: String,
    /// Where it comes from.
    pub origin: Origin,
    /// The file as it is, where it could be read.
    pub text: String,
    /// What it says, or what is wrong with it.
    pub document: Result<Document, DocumentError>,
}

/// The sets that exist.
#[derive(Debug, Clone)]
pub struct Library {
    sets: BTreeMap<String, Listed>,
}

/// A set cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// No such set.
    #[error("there is no guardrail set `{name}`")]
    Unknown {
        /// The name.
        name: SetName,
        /// The name of an existing set that is near.
        near: Option<String>,
        /// The sets that exist.
        existing: Vec<String>,
    },
    /// Its file is broken, or that of a set that it extends.
    #[error("the guardrail set `{name}` cannot be read")]
    Broken {
        /// The broken one.
        name: SetName,
        /// Why.
        #[source]
        source: DocumentError,
    },
    /// It extends a set that does not exist.
    #[error("the guardrail set `{set}` extends `{base}`, and there is no such set")]
    Base {
        /// The one that extends.
        set: SetName,
        /// What is missing.
        base: SetName,
        /// The name of an existing set that is near.
        near: Option<String>,
        /// The sets that exist.
        existing: Vec<String>,
    },
    /// The chain comes back to where it was.
    #[error("guardrail sets extend each other in a circle: {0}")]
    Circle(String),
    /// The chain is too long.
    #[error("`{0}` stands on more than {DEEPEST} other sets")]
    Deep(SetName),
    /// Too many rules in all.
    #[error("the guardrail set `{0}` comes to more than {MOST_RULES} rules")]
    Rules(SetName),
}

impl Explain for SetError {
    fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "guardrails-unknown",
            Self::Broken { .. } => "guardrails-document",
            Self::Base { .. } => "guardrails-base-unknown",
            Self::Circle(_) => "guardrails-circle",
            Self::Deep(_) => "guardrails-deep",
            Self::Rules(_) => "guardrails-rules",
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { near, existing, .. } | Self::Base { near, existing, .. } => {
                let meant = near.as_ref().map(|near| format!("did you mean `{near}`? "));
                let names: Vec<String> = existing.iter().map(|name| format!("`{name}`")).collect();
                Some(format!("{}these exist: {}", meant.unwrap_or_default(), names.join(", ")))
            }
            Self::Broken { source, .. } => source.fix.clone(),
            Self::Circle(_) => Some("take `extends` out of one of them".into()),
            Self::Deep(_) => Some("put several of them into one".into()),
            Self::Rules(_) => Some("put several under one pattern".into()),
        }
    }
    fn exit(&self) -> Exit {
        Exit::Usage
    }
}

impl Library {
    /// The tiers alone.
    pub fn embedded() -> Self {
        let sets = Tier::ALL.into_iter().map(|tier| {
            let name = tier.as_str().to_owned();
            let document = tier.document();
            let listed = Listed {
                name: name.clone(),
                origin: Origin::Tier(tier),
                text: tier.text().to_owned(),
                document,
            };
            (name, listed)
        });
        Self { sets: sets.collect() }
    }

    /// Adds or replaces a set, as if its file were there.
    pub fn put(&mut self, listed: Listed) {
        self.sets.insert(listed.name.clone(), listed);
    }

    /// Every set: the tiers from loose to tight, then the user's own by name, the broken ones too.
    pub fn all(&self) -> impl Iterator<Item = &Listed> {
        let tiers = Tier::ALL.into_iter().filter_map(|tier| self.sets.get(tier.as_str()));
        let own = self.sets.values().filter(|listed| matches!(listed.origin, Origin::Own(_)));
        tiers.chain(own)
    }

    /// The names of all sets, in the order of [`Library::all`].
    pub fn names(&self) -> Vec<String> {
        self.all().map(|listed| listed.name.clone()).collect()
    }

    /// One set as it is, also a broken one.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn get(&self, name: &SetName) -> Result<&Listed, SetError> {
        self.sets.get(name.as_str()).ok_or_else(|| SetError::Unknown {
            name: name.clone(),
            near: self.near(name),
            existing: self.names(),
        })
    }

    /// What a set says by itself.
    ///
    /// # Errors
    /// When there is none of that name, or its file is broken.
    pub fn document(&self, name: &SetName) -> Result<&Document, SetError> {
        let listed = self.get(name)?;
        listed
            .document
            .as_ref()
            .map_err(|source| SetError::Broken { name: name.clone(), source: source.clone() })
    }

    /// What a set comes to with all that it extends. Rules only add: nothing that a base denies or limits is looser in
    /// what comes out.
    ///
    /// # Errors
    /// When it or one that it extends is missing or broken, or the chain does not end.
    pub fn resolve(&self, name: &SetName) -> Result<GuardrailSet, SetError> {
        let mut chain = vec![self.document(name)?];
        while let Some((top, base)) = chain.last().and_then(|top| Some((top, top.extends.as_ref()?))) {
            if chain.iter().any(|seen| seen.name == *base) {
                let names: Vec<String> = chain.iter().map(|seen| format!("`{}`", seen.name)).collect();
                return Err(SetError::Circle(format!("{}, `{base}`", names.join(", "))));
            }
            if chain.len() > DEEPEST {
                return Err(SetError::Deep(name.clone()));
            }
            let document = self.document(base).map_err(|error| match error {
                SetError::Unknown { near, mut existing, .. } => {
                    existing.retain(|other| *other != top.name.as_str());
                    SetError::Base { set: top.name.clone(), base: base.clone(), near, existing }
                }
                error => error,
            })?;
            chain.push(document);
        }
        let extends = chain.iter().skip(1).map(|base| base.name.clone()).collect();
        let mut set = GuardrailSet::nothing(name.clone());
        set.extends = extends;
        for document in chain.iter().rev() {
            set.add(document);
            if set.rules.len() > MOST_RULES {
                return Err(SetError::Rules(name.clone()));
            }
        }
        Ok(set)
    }

    /// What a listed set comes to.
    ///
    /// # Errors
    /// A sentence on what is wrong with it.
    pub fn outcome(&self, listed: &Listed) -> Result<GuardrailSet, String> {
        listed.document.as_ref().map_err(ToString::to_string)?;
        let name = SetName::parse(&listed.name).map_err(|error| error.to_string())?;
        self.resolve(&name).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            format!("{error}{}", cause.unwrap_or_default())
        })
    }

    /// The user's sets that extend this one directly.
    pub fn extended_by(&self, name: &SetName) -> Vec<SetName> {
        let documents = self.sets.values().filter_map(|listed| listed.document.as_ref().ok());
        documents
            .filter(|document| document.extends.as_ref() == Some(name))
            .map(|document| document.name.clone())
            .collect()
    }

    /// The tightest tier that a set contains.
    pub fn tier_of(&self, set: &GuardrailSet) -> Option<Tier> {
        Tier::ALL.into_iter().rev().find(|tier| {
            SetName::parse(tier.as_str())
                .ok()
                .and_then(|name| self.resolve(&name).ok())
                .is_some_and(|tier| set.contains(&tier))
        })
    }

    /// The existing name that is most like this one, if one is like it.
    fn near(&self, name: &SetName) -> Option<String> {
        let alike = |other: &str| strsim::jaro_winkler(name.as_str(), other);
        let best = self.sets.keys().max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
        (alike(best) > 0.8).then(|| best.clone())
    }
}

impl GuardrailSet {
    /// A set that limits nothing.
    fn nothing(name: SetName) -> Self {
        Self {
            name,
            extends: Vec::new(),
            rules: Vec::new(),
            deny_undecided: false,
            honor_project_rules: false,
            environment: Environment::default(),
            confine: Confine { filesystem: Filesystem::Open, tcp: None },
            require_kernel: false,
        }
    }

    /// Adds what a document says.
    fn add(&mut self, document: &Document) {
        let kinds = [
            (RuleKind::Commands, &document.deny.commands),
            (RuleKind::Tools, &document.deny.tools),
            (RuleKind::Paths, &document.deny.paths),
        ];
        for (kind, patterns) in kinds {
            for pattern in patterns {
                // The set that brought it first stays its name: a denial then names what must be changed.
                if !self.has(kind, pattern) {
                    self.rules.push(Rule { set: document.name.clone(), kind, pattern: pattern.clone() });
                }
            }
        }
        self.deny_undecided |= document.deny.undecided;
        self.honor_project_rules |= document.honor_project_rules;
        self.environment.scrub |= document.environment.scrub;
        for name in &document.environment.keep {
            if !self.environment.keep.contains(name) {
                self.environment.keep.push(name.clone());
            }
        }
        if let Some(filesystem) = document.confine.filesystem {
            self.confine.filesystem = self.confine.filesystem.max(filesystem);
        }
        if let Some(ports) = &document.confine.tcp {
            let kept = match &self.confine.tcp {
                None => ports.clone(),
                Some(base) => base.iter().copied().filter(|port| ports.contains(port)).collect(),
            };
            self.confine.tcp = Some(kept);
        }
        self.require_kernel |= document.require.kernel;
    }

    pub(super) fn has(&self, kind: RuleKind, pattern: &str) -> bool {
        self.rules.iter().any(|rule| rule.kind == kind && rule.pattern == pattern)
    }
}
