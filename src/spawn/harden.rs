//! Keeps agents of the same user out of this process's memory and environment.

/// Makes this process unreadable for others of the same user: `/proc/PID/environ`, `mem`, `fd` and ptrace are for
/// root with its capability alone. Call it once, first thing, in a role that holds a secret.
///
/// Side effect: the process may not open its own `/proc/self/environ` either.
///
/// # Errors
/// When the kernel refuses. On systems without the attribute it does nothing.
pub fn harden_self() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}
