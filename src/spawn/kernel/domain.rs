//! Puts the calling thread, and so all that it starts from then on, into a Landlock domain. There is no way out of it.

use std::sync::OnceLock;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, RestrictionStatus,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};

use super::places::{Granted, Places};
use crate::guardrails::{Access, KernelRules, KernelSupport};

/// The newest set of rights that was tried here. A newer kernel holds these and no further ones.
const TRIED: ABI = ABI::V7;

/// What the running kernel can hold.
pub fn kernel_support() -> KernelSupport {
    static SUPPORT: OnceLock<KernelSupport> = OnceLock::new();
    *SUPPORT.get_or_init(|| {
        // The kernel tells its number to who asks for a domain: a thread of no other use does, and ends.
        let asked = std::thread::spawn(|| {
            let ruleset = Ruleset::default().handle_access(AccessFs::Execute).and_then(Ruleset::create);
            ruleset.and_then(RulesetCreated::restrict_self)
        });
        asked.join().ok().and_then(Result::ok).map_or(support_of(0), |status| support_of(number(&status)))
    })
}

fn number(status: &RestrictionStatus) -> u32 {
    match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.and_then(|abi| u32::try_from(abi).ok()).unwrap_or(effective_abi as u32)
        }
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    }
}

fn support_of(abi: u32) -> KernelSupport {
    KernelSupport { abi, files: abi >= 3, tcp: abi >= 4, signals: abi >= 6 }
}

/// Restricts the calling thread for good. Where the kernel has no Landlock it does nothing; where it has a part,
/// that part. Gives how many rules were put in.
///
/// # Errors
/// In words, when a rule cannot be put in: then nothing may be started from this thread.
pub(super) fn enter(rules: &KernelRules) -> Result<usize, String> {
    let places = Places::resolve(&rules.places)?;
    let wrong = |error: landlock::RulesetError| format!("the kernel took no rules: {}", chain(&error));
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(TRIED))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(TRIED)))
        .map_err(wrong)?;
    if rules.connect.is_some() {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp).map_err(wrong)?;
    }
    let mut ruleset = ruleset.create().map_err(wrong)?;
    let count = places.grant(|granted| add(&mut ruleset, granted))?;
    for port in rules.connect.iter().flatten() {
        (&mut ruleset).add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(wrong)?;
    }
    // What is tried before the start is no news for the machine's audit log.
    let ruleset = ruleset.log_same_exec(false).map_err(wrong)?;
    let status = ruleset.restrict_self().map_err(wrong)?;
    if status.ruleset == RulesetStatus::NotEnforced && kernel_support().abi > 0 {
        return Err("the kernel took the rules and does not hold them".into());
    }
    if rules.connect.is_some() && kernel_support().tcp {
        super::filter::enter()?;
    }
    Ok(count)
}

fn add(ruleset: &mut RulesetCreated, granted: &Granted<'_>) -> Result<(), String> {
    let rights = match (granted.access, granted.folder) {
        (Access::Closed, _) => return Ok(()),
        (Access::Read, true) => AccessFs::from_read(TRIED),
        (Access::Read, false) => AccessFs::from_read(TRIED) & AccessFs::from_file(TRIED),
        (Access::Write, true) => AccessFs::from_all(TRIED),
        (Access::Write, false) => AccessFs::from_file(TRIED),
    };
    match ruleset.add_rule(rule(granted, rights)) {
        Ok(_) => Ok(()),
        // A thing that the kernel has no rules for (a name space that is bound to a file): it stays closed.
        Err(_) if !granted.named => Ok(()),
        Err(error) => Err(format!("no rule for `{}`: {}", granted.path.display(), chain(&error))),
    }
}

fn rule<'a>(granted: &Granted<'a>, rights: BitFlags<AccessFs>) -> PathBeneath<std::os::fd::BorrowedFd<'a>> {
    PathBeneath::new(granted.descriptor, rights)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = source.to_string();
        next = source.source();
    }
    text
}
