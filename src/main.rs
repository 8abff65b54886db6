//! The `worca` program: parse, dispatch, exit code. Nothing else.

use clap::Parser;

#[derive(Parser)]
enum Cli {
    Container(worca::cli::container::ContainerArgs),
}

fn main() -> std::process::ExitCode {
    let Cli::Container(args) = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("runtime");
    let exit = runtime.block_on(worca::cli::container::run(args)).unwrap_or_else(|failure| {
        eprint!("{}", failure.render());
        failure.exit()
    });
    runtime.shutdown_timeout(std::time::Duration::from_millis(100));
    std::process::ExitCode::from(exit as u8)
}
