//! Two sets side by side: whether one holds all that the other holds, and in what they differ.

use super::GuardrailSet;
use crate::guardrails::Rule;

/// In what one set differs from another.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// Rules that the first has alone.
    pub only_first: Vec<Rule>,
    /// Rules that the second has alone.
    pub only_second: Vec<Rule>,
    /// Limits that differ.
    pub limits: Vec<LimitDifference>,
}

/// One limit that differs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LimitDifference {
    /// Its key in the file.
    pub limit: &'static str,
    /// In the first set.
    pub first: String,
    /// In the second set.
    pub second: String,
}

impl Difference {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.only_first.is_empty() && self.only_second.is_empty() && self.limits.is_empty()
    }
}

impl GuardrailSet {
    /// Whether it holds every rule and every limit of the other. What it is called and what it is made from play no
    /// part. `environment.keep` plays none either: what carries a credential can be kept in no set.
    pub fn contains(&self, other: &Self) -> bool {
        let at_least = |own: bool, asked: bool| own || !asked;
        let ports = match (&self.confine.tcp, &other.confine.tcp) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(asked)) => own.iter().all(|port| asked.contains(port)),
        };
        other.rules.iter().all(|rule| self.has(rule.kind, &rule.pattern))
            && at_least(self.deny_undecided, other.deny_undecided)
            && at_least(self.honor_project_rules, other.honor_project_rules)
            && at_least(self.environment.scrub, other.environment.scrub)
            && at_least(self.require_kernel, other.require_kernel)
            && self.confine.filesystem >= other.confine.filesystem
            && ports
    }

    /// In what it differs from another set.
    pub fn difference(&self, other: &Self) -> Difference {
        let alone = |from: &Self, to: &Self| {
            from.rules.iter().filter(|rule| !to.has(rule.kind, &rule.pattern)).cloned().collect()
        };
        let limits = self.limits().into_iter().zip(other.limits());
        Difference {
            only_first: alone(self, other),
            only_second: alone(other, self),
            limits: limits
                .filter(|((_, first), (_, second))| first != second)
                .map(|((limit, first), (_, second))| LimitDifference { limit, first, second })
                .collect(),
        }
    }

    /// Each limit beside the rules, by its key in the file, as text.
    pub fn limits(&self) -> [(&'static str, String); 7] {
        let yes = |value: bool| if value { "yes" } else { "no" }.to_owned();
        let tcp = match &self.confine.tcp {
            None => "any port".into(),
            Some(ports) if ports.is_empty() => "Worca's own services".into(),
            Some(ports) => {
                let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
                format!("Worca's own services, {}", ports.join(", "))
            }
        };
        let keep = match self.environment.keep.as_slice() {
            [] => "none".into(),
            names => names.join(", "),
        };
        [
            ("deny.undecided", yes(self.deny_undecided)),
            ("honor_project_rules", yes(self.honor_project_rules)),
            ("environment.scrub", yes(self.environment.scrub)),
            ("environment.keep", keep),
            ("confine.filesystem", self.confine.filesystem.as_str().into()),
            ("confine.tcp", tcp),
            ("require.kernel", yes(self.require_kernel)),
        ]
    }
}
