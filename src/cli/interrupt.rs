//! Ctrl-C, heard from the moment this is made: one that comes while something else is done is not lost.

/// The interrupts of this process.
pub struct Interrupts {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
    #[cfg(windows)]
    signal: Option<tokio::signal::windows::CtrlC>,
}

impl Interrupts {
    /// Listens from now on. From then on an interrupt does not end the process by itself.
    pub fn listen() -> Self {
        Self {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).ok(),
            #[cfg(windows)]
            signal: tokio::signal::windows::ctrl_c().ok(),
        }
    }
    /// The next one. Waits for ever where the system gives none. Can be dropped and called again.
    pub async fn next(&mut self) {
        #[cfg(any(unix, windows))]
        if let Some(signal) = &mut self.signal {
            signal.recv().await;
            return;
        }
        std::future::pending::<()>().await;
    }
}
