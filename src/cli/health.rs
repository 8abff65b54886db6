//! `worca health`: the healthcheck of the box's containers.

use std::time::Duration;

use crate::cli::text::print;
use crate::failure::{Exit, Explain, Failure};
use crate::http::Client;
use crate::server::wire::HealthAnswer;

/// How long a healthy service takes at most.
const TIME: Duration = Duration::from_secs(3);

/// Ask a service whether it is well
///
/// Ends with 0 when the service answers that it is, and with 1 when not.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  worca health --url http://127.0.0.1:4317/health")]
pub struct Args {
    /// The health address of the service
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:4317/health")]
    pub url: String,
}

/// It answers, and not that it is well.
#[derive(Debug, thiserror::Error)]
#[error("the service on {0} answers that it is not well")]
pub struct Unwell(String);

impl Explain for Unwell {
    fn code(&self) -> &'static str {
        "unwell"
    }
}

/// Asks.
///
/// # Errors
/// When the service does not say that it is well.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    let wrong = || crate::http::CallError::Address(args.url.chars().take(200).collect());
    let url = url::Url::parse(&args.url).map_err(|_| wrong())?;
    let client = Client::new(&url.origin().ascii_serialization())?.with_time_limit(TIME);
    let answer: HealthAnswer = client.get(url.path()).await?;
    if answer.status != "ok" {
        return Err(Unwell(client.base().to_owned()).into());
    }
    print("ok\n")?;
    Ok(Exit::Done)
}
