//! How a long job shows on standard error: bars and spinners on a terminal, plain lines elsewhere.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use console::{Term, style};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::container::report::Reporter;

/// The one that fits standard error.
pub(super) fn reporter() -> Box<dyn Reporter> {
    if Term::stderr().is_term() && std::env::var_os("CI").is_none() {
        Box::new(Bars {
            all: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()),
            bars: Mutex::default(),
        })
    } else {
        Box::new(Lines { last: Mutex::default() })
    }
}

/// A line per change.
struct Lines {
    /// What was said last of each thing, and the tenths of it that were done.
    last: Mutex<HashMap<String, (String, u64)>>,
}

impl Lines {
    fn line(text: &str) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
    fn is_new(&self, what: &str, text: &str) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = last.entry(what.to_owned()).or_default();
        let new = entry.0 != text;
        text.clone_into(&mut entry.0);
        new
    }
}

impl Reporter for Lines {
    fn step(&self, what: &str, doing: &str) {
        if self.is_new(what, doing) {
            Self::line(&format!("{what}: {doing}"));
        }
    }
    fn done(&self, what: &str, did: &str) {
        if self.is_new(what, did) {
            Self::line(&format!("{what}: {did}"));
        }
    }
    fn progress(&self, what: &str, done: u64, total: u64) {
        let tenth = (done * 10).checked_div(total).unwrap_or_default();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = last.entry(what.to_owned()).or_default();
        if tenth > entry.1 {
            entry.1 = tenth;
            Self::line(&format!("{what}: {} % of {} MB", tenth * 10, total / 1_000_000));
        }
    }
    fn note(&self, sentence: &str) {
        Self::line(sentence);
    }
    fn warn(&self, sentence: &str) {
        Self::line(&format!("warning: {sentence}"));
    }
}

/// A moving line per thing.
struct Bars {
    all: MultiProgress,
    bars: Mutex<HashMap<String, ProgressBar>>,
}

impl Bars {
    fn bar(&self, what: &str) -> ProgressBar {
        let mut bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let bar =
                self.all.add(ProgressBar::new_spinner().with_style(spinner()).with_prefix(what.to_owned()));
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        };
        bars.entry(what.to_owned()).or_insert_with(new).clone()
    }
}

fn spinner() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {prefix} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn bytes() -> ProgressStyle {
    let template = "{spinner} {prefix} [{bar:30}] {bytes}/{total_bytes}";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Reporter for Bars {
    fn step(&self, what: &str, doing: &str) {
        self.bar(what).set_message(doing.to_owned());
    }
    fn done(&self, what: &str, did: &str) {
        let bar = self.bar(what);
        bar.set_style(
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        bar.finish_with_message(format!("{} {what} {did}", style("✔").green()));
    }
    fn progress(&self, what: &str, done: u64, total: u64) {
        let bar = self.bar(what);
        bar.set_style(bytes());
        bar.set_length(total);
        bar.set_position(done);
    }
    fn note(&self, sentence: &str) {
        let _ = self.all.println(sentence);
    }
    fn warn(&self, sentence: &str) {
        let _ = self.all.println(format!("{} {sentence}", style("warning:").yellow().bold()));
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        let bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        for bar in bars.values().filter(|bar| !bar.is_finished()) {
            bar.abandon();
        }
    }
}
