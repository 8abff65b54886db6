//! Whether a call that costs is made: its model has to be one that the pass opens, and there has to be room for it
//! under every cap.

use std::pin::Pin;
use std::sync::Arc;

use hyper::header::{HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

use super::answer::{self, Reply};
use super::books::{Books, Call, Refusal};
use super::meter::{Asked, UnclearError};
use super::pass::Live;
use super::wire::{Reached, RefusalKind};
use crate::amount::Amount;

/// How long a caller is asked to wait when others hold what is left, in seconds.
const RETRY: HeaderValue = HeaderValue::from_static("10");

/// What decides about one call.
pub(super) struct Admission {
    pub(super) books: Arc<Books>,
    pub(super) live: Arc<Live>,
    /// Nobody is billed for it by use.
    pub(super) free: bool,
}

/// A decision on its way; it can wait for other calls to end.
pub(super) type Admitting = Pin<Box<dyn Future<Output = Result<Call, Denied>> + Send>>;

/// Why a call is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Denied {
    /// The request does not say clearly what it asks for.
    Unclear(UnclearError),
    /// The pass does not open this model.
    Model(String),
    /// The books say no.
    Books(Refusal),
}

impl Admission {
    /// Looks before the request is known whether any could be admitted, so that nothing is sent for nothing.
    pub(super) fn look(&self) -> Result<(), Denied> {
        let looked = self.books.look(&self.live, self.free).map_err(Denied::Books);
        looked.inspect_err(|denied| denied.note(&self.live))
    }

    /// Decides, from what the request asks for.
    pub(super) fn admit(self, asked: Result<Asked, UnclearError>) -> Admitting {
        Box::pin(self.decide(asked))
    }

    /// The same, for whoever can wait for it himself.
    pub(super) async fn decide(self, asked: Result<Asked, UnclearError>) -> Result<Call, Denied> {
        let Self { books, live, free } = self;
        let decided = Self::judge(&books, &live, free, asked).await;
        match &decided {
            Ok(_) => live.admitted(),
            Err(denied) => denied.note(&live),
        }
        decided
    }

    async fn judge(
        books: &Arc<Books>,
        live: &Live,
        free: bool,
        asked: Result<Asked, UnclearError>,
    ) -> Result<Call, Denied> {
        let asked = asked.map_err(Denied::Unclear)?;
        if !live.bond.models.is_empty() {
            let named = asked.model.iter().chain(&asked.others);
            if let Some(closed) = named.into_iter().find(|model| !live.bond.opens(model)) {
                return Err(Denied::Model(closed.clone()));
            }
            if asked.model.is_none() {
                return Err(Denied::Model(String::new()));
            }
        }
        books.begin(live, &asked, free).await.map_err(Denied::Books)
    }
}

impl Denied {
    /// The sentence for people and models.
    fn sentence(&self) -> String {
        let of = |reached: &Reached| {
            let spent = Amount::of(reached.limit.unit(), reached.spent);
            format!("{spent} of {}", reached.limit)
        };
        match self {
            Self::Unclear(unclear) => format!("worca: {unclear}"),
            Self::Model(name) if name.is_empty() => {
                "worca: the request names no model, and this pass opens some models alone".into()
            }
            Self::Model(name) => format!("worca: this pass does not open the model `{name}`"),
            Self::Books(Refusal::Spent(reached)) => {
                format!("worca: {} is spent: {}", reached.cap, of(reached))
            }
            Self::Books(Refusal::Unpriced(reached)) => format!(
                "worca: the price table does not know this model, and {} is in dollars ({}); add its price, or set the \
                 budget in tokens",
                reached.cap,
                of(reached)
            ),
            Self::Books(Refusal::Busy) => {
                "worca: other calls hold what is left of a budget; try again when one has ended".into()
            }
            Self::Books(Refusal::Unwritten) => {
                "worca: the key service cannot write its books, and makes no call that it cannot write down"
                    .into()
            }
        }
    }

    /// Remembers it with the pass, and says it in the log.
    fn note(&self, live: &Live) {
        let sentence = self.sentence();
        let kind = match self {
            Self::Model(_) => Some(RefusalKind::Model),
            Self::Books(Refusal::Spent(_) | Refusal::Unpriced(_)) => Some(RefusalKind::Budget),
            Self::Unclear(_) | Self::Books(Refusal::Busy | Refusal::Unwritten) => None,
        };
        if let Some(kind) = kind {
            live.refused(kind, &sentence);
        }
        tracing::warn!(pass = %live.id, run = %live.bond.run, reason = sentence, "a call was refused");
    }

    /// The answer to the caller.
    pub(super) fn answer(&self) -> Response<Reply> {
        let (status, kind) = match self {
            Self::Unclear(_) => (StatusCode::BAD_REQUEST, "invalid_request_error"),
            Self::Model(_) => (StatusCode::FORBIDDEN, "permission_error"),
            Self::Books(Refusal::Spent(_) | Refusal::Unpriced(_)) => {
                (StatusCode::PAYMENT_REQUIRED, "billing_error")
            }
            Self::Books(Refusal::Busy) => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_error"),
            Self::Books(Refusal::Unwritten) => (StatusCode::SERVICE_UNAVAILABLE, "api_error"),
        };
        let mut response = answer::error(status, kind, &self.sentence());
        if status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(RETRY_AFTER, RETRY);
        }
        response
    }
}
