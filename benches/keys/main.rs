//! The key service beside nginx and LiteLLM, in front of one upstream, in one run: prints a table, and ends with 1 when
//! an aim is missed. Also how long a pass outlives its agent. `scripts/bench keys` and `scripts/bench passes` call it.
//!
//!     keys WORCA NGINX LITELLM [SECONDS] [ROUNDS]
//!     keys passes WORCA [ENDS]
//!     keys upstream

#![allow(clippy::unwrap_used, clippy::panic, reason = "a measurement that cannot be made ends")]
#![allow(clippy::disallowed_methods, reason = "what is measured runs as plain children")]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod load;
#[cfg(target_os = "linux")]
mod measure;
#[cfg(target_os = "linux")]
mod passes;
#[cfg(target_os = "linux")]
mod peers;
mod upstream;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // A thousand streams are two thousand descriptors in a proxy.
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let number = |index: usize, default: f64| words.get(index).map_or(default, |word| word.parse().unwrap());
    match *words.as_slice() {
        ["upstream"] => runtime.block_on(upstream::serve()).map(|()| true),
        ["passes", worca, ..] => Ok(passes::all(worca.as_ref(), number(2, 200.0) as usize)),
        [worca, nginx, litellm, ..] => Ok(runtime.block_on(measure::all(
            worca.as_ref(),
            nginx.as_ref(),
            litellm.as_ref(),
            std::time::Duration::from_secs_f64(number(3, 2.0)),
            number(4, 3.0) as usize,
        ))),
        _ => {
            println!("usage: keys WORCA NGINX LITELLM [SECONDS] [ROUNDS]");
            Ok(true)
        }
    }
    .map_or(std::process::ExitCode::FAILURE, |met| if met { 0.into() } else { 1.into() })
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the key service is measured on Linux");
}
