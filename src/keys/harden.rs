//! Keeps the memory of a process that holds keys to itself.

/// Forbids core dumps and, on Linux, reading this process's memory and environment through `/proc` or a
/// debugger, also for processes of the same user.
///
/// # Errors
/// When the kernel refuses, after which no key may be read.
#[cfg(unix)]
pub fn harden() -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Nothing to do where there is no such switch.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn harden() -> std::io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn a_hardened_process_can_be_neither_dumped_nor_read() {
        super::harden().unwrap();
        let behaviour = rustix::process::dumpable_behavior().unwrap();
        assert_eq!(behaviour, rustix::process::DumpableBehavior::NotDumpable);
        assert_eq!(rustix::process::getrlimit(rustix::process::Resource::Core).current, Some(0));
    }
}
