//! What may be asked of a slot: the few paths of the APIs that it speaks. Anything else is not forwarded.

use std::fmt;

use hyper::Method;

/// A language that providers speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// Anthropic's Messages API: what caches gave and took stands beside the input.
    Anthropic,
    /// OpenAI's Chat Completions and Responses: what caches gave and took is part of the input.
    Openai,
}

impl Api {
    /// The word for it, in a slots file and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a request asks for, of the few things that may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// `POST /v1/messages` (Anthropic); it costs.
    Messages,
    /// `POST /v1/messages/count_tokens` (Anthropic): free of charge.
    CountTokens,
    /// `POST /v1/chat/completions` (OpenAI); it costs.
    ChatCompletions,
    /// `POST /v1/responses` (OpenAI); it costs.
    Responses,
    /// `GET /v1/models` and `GET /v1/models/{id}`, of both APIs.
    Models,
    /// `HEAD /`, which a client sends to see whether anybody is there; answered here.
    Presence,
}

impl Ask {
    /// What `method` on `path` asks for, where a slot speaks `apis`. The path is compared byte for byte, so
    /// nothing that would have to be normalised first (`//`, `..`, `%2f`) is ever taken.
    pub fn of(apis: &[Api], method: &Method, path: &str) -> Option<Self> {
        let asked = match (method.as_str(), path) {
            ("POST", "/v1/messages") => Self::Messages,
            ("POST", "/v1/messages/count_tokens") => Self::CountTokens,
            ("POST", "/v1/chat/completions") => Self::ChatCompletions,
            ("POST", "/v1/responses") => Self::Responses,
            ("GET", "/v1/models") => Self::Models,
            ("HEAD", "" | "/") => Self::Presence,
            ("GET", path) => {
                path.strip_prefix("/v1/models/").filter(|id| is_model_id(id)).map(|_| Self::Models)?
            }
            _ => return None,
        };
        asked.api().is_none_or(|api| apis.contains(&api)).then_some(asked)
    }

    /// The API that this belongs to; `None` for what every one offers.
    pub fn api(self) -> Option<Api> {
        match self {
            Self::Messages | Self::CountTokens => Some(Api::Anthropic),
            Self::ChatCompletions | Self::Responses => Some(Api::Openai),
            Self::Models | Self::Presence => None,
        }
    }

    /// Whether a provider takes money for it.
    pub fn costs(self) -> bool {
        match self {
            Self::Messages | Self::ChatCompletions | Self::Responses => true,
            Self::CountTokens | Self::Models | Self::Presence => false,
        }
    }
}

/// Some providers' models have a maker before their name: `maker/model`, and `model:free`.
fn is_model_id(id: &str) -> bool {
    (1..=128).contains(&id.len())
        && id.split('/').count() <= 2
        && id.split('/').all(|part| {
            part.bytes().any(|byte| byte != b'.')
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b':'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &[Api] = &[Api::Anthropic, Api::Openai];

    fn ask(apis: &[Api], method: &str, path: &str) -> Option<Ask> {
        Ask::of(apis, &method.parse().unwrap(), path)
    }

    #[test]
    fn only_the_listed_paths_are_asked_for_and_no_odd_spelling_of_them() {
        assert_eq!(ask(BOTH, "POST", "/v1/messages"), Some(Ask::Messages));
        assert_eq!(ask(BOTH, "POST", "/v1/messages/count_tokens"), Some(Ask::CountTokens));
        assert_eq!(ask(BOTH, "POST", "/v1/chat/completions"), Some(Ask::ChatCompletions));
        assert_eq!(ask(BOTH, "POST", "/v1/responses"), Some(Ask::Responses));
        assert_eq!(ask(BOTH, "GET", "/v1/models"), Some(Ask::Models));
        assert_eq!(ask(BOTH, "GET", "/v1/models/claude-x.1_2"), Some(Ask::Models));
        assert_eq!(ask(BOTH, "GET", "/v1/models/maker/model-1:free"), Some(Ask::Models));
        assert_eq!(ask(BOTH, "HEAD", "/"), Some(Ask::Presence));
        for (method, path) in [
            ("GET", "/v1/messages"),
            ("DELETE", "/v1/messages"),
            ("POST", "/v1/complete"),
            ("POST", "/v1/messages/"),
            ("POST", "//v1/messages"),
            ("POST", "/v1//messages"),
            ("POST", "/v1/messages/../admin"),
            ("POST", "/v1/%6dessages"),
            ("POST", "/v1%2fmessages"),
            ("POST", "/v1/messages;x"),
            ("POST", "/v1/chat/completions/"),
            ("POST", "/v1/embeddings"),
            ("GET", "/v1/responses"),
            ("GET", "/v1/models/.."),
            ("GET", "/v1/models/a/.."),
            ("GET", "/v1/models/a/b/c"),
            ("GET", "/v1/models/a/"),
            ("GET", "/v1/models/%2e%2e"),
            ("GET", "/v1/models/"),
            ("GET", "/"),
        ] {
            assert_eq!(ask(BOTH, method, path), None, "{method} {path}");
        }
    }

    #[test]
    fn a_slot_offers_the_paths_of_the_apis_that_it_speaks_and_no_others() {
        for (api, theirs, others) in [
            (
                Api::Anthropic,
                ["/v1/messages", "/v1/messages/count_tokens"],
                ["/v1/chat/completions", "/v1/responses"],
            ),
            (
                Api::Openai,
                ["/v1/chat/completions", "/v1/responses"],
                ["/v1/messages", "/v1/messages/count_tokens"],
            ),
        ] {
            for path in theirs {
                assert!(ask(&[api], "POST", path).is_some(), "{api} {path}");
            }
            for path in others {
                assert_eq!(ask(&[api], "POST", path), None, "{api} {path}");
            }
            assert_eq!(ask(&[api], "GET", "/v1/models"), Some(Ask::Models));
            assert_eq!(ask(&[api], "HEAD", "/"), Some(Ask::Presence));
        }
    }
}
