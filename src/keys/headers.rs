//! Which headers pass: everything of the caller's but credentials, cookies and what belongs to one hop; and
//! the same on the way back, without anything in which the key could stand.

use hyper::header::{
    ACCEPT_ENCODING, ALT_SVC, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED, HOST,
    HeaderMap, HeaderName, HeaderValue, LOCATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, SET_COOKIE, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE, VIA, WWW_AUTHENTICATE,
};

use super::credential::{Credential, X_API_KEY};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// What belongs to one connection (RFC 9110, 7.6.1), and not to the message.
const ONE_HOP: [HeaderName; 7] =
    [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// What a caller must not send on: its pass, other credentials, and what would tell of this network.
const NOT_OUT: [HeaderName; 14] = [
    HOST,
    CONTENT_LENGTH,
    EXPECT,
    AUTHORIZATION,
    X_API_KEY,
    PROXY_AUTHORIZATION,
    COOKIE,
    FORWARDED,
    VIA,
    ACCEPT_ENCODING,
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-real-ip"),
];

/// What an upstream must not send back: credentials, cookies, and hints to go elsewhere.
const NOT_BACK: [HeaderName; 11] = [
    AUTHORIZATION,
    X_API_KEY,
    PROXY_AUTHORIZATION,
    PROXY_AUTHENTICATE,
    WWW_AUTHENTICATE,
    COOKIE,
    SET_COOKIE,
    LOCATION,
    ALT_SVC,
    HeaderName::from_static("set-cookie2"),
    HeaderName::from_static("authentication-info"),
];

/// The headers of the request to the upstream, with the credential on when the slot has one.
pub(super) fn outward(from: &HeaderMap, credential: Option<&Credential>) -> HeaderMap {
    let named = named_by_connection(from);
    let mut out = HeaderMap::with_capacity(from.len() + 2);
    for (name, value) in from {
        if !ONE_HOP.contains(name) && !NOT_OUT.contains(name) && !named.contains(name) {
            out.append(name, value.clone());
        }
    }
    // An error that comes compressed could not be searched for the key.
    out.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(credential) = credential {
        credential.put_on(&mut out);
    }
    out
}

/// The headers of the answer to the caller.
pub(super) fn back(from: &HeaderMap, credential: Option<&Credential>) -> HeaderMap {
    let named = named_by_connection(from);
    let mut out = HeaderMap::with_capacity(from.len());
    for (name, value) in from {
        let passes = !ONE_HOP.contains(name)
            && !NOT_BACK.contains(name)
            && !named.contains(name)
            && !credential.is_some_and(|credential| holds(value.as_bytes(), credential.needle()));
        if passes {
            out.append(name, value.clone());
        }
    }
    out
}

fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect()
}

fn holds(text: &[u8], needle: &[u8]) -> bool {
    !needle.is_empty() && text.windows(needle.len()).any(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::credential::{Kind, Saved};
    use crate::keys::slot::{Auth, Origin};
    use crate::secret::Secret;

    fn credential() -> Credential {
        let secret = Secret::new("sk-ant-api03-canary".into());
        let saved = Saved { kind: Kind::ApiKey, endpoint: Origin::anthropic().into(), secret };
        Credential::new(saved, Auth::XApiKey).unwrap()
    }

    fn map(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        map
    }

    #[test]
    fn the_callers_own_headers_pass_and_its_credentials_and_hop_headers_do_not() {
        let out = outward(
            &map(&[
                ("host", "keys:4318"),
                ("authorization", "Bearer wp_x"),
                ("x-api-key", "wp_x"),
                ("cookie", "a=b"),
                ("connection", "keep-alive, X-Hop"),
                ("x-hop", "1"),
                ("te", "trailers"),
                ("accept-encoding", "br"),
                ("anthropic-version", "2023-06-01"),
                ("anthropic-x-new", "1"),
                ("anthropic-beta", "a-1,b-2"),
                ("user-agent", "agent/1"),
            ]),
            Some(&credential()),
        );
        let mut names: Vec<&str> = out.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let wanted = [
            "accept-encoding",
            "anthropic-beta",
            "anthropic-version",
            "anthropic-x-new",
            "user-agent",
            "x-api-key",
        ];
        assert_eq!(names, wanted);
        assert_eq!(out["x-api-key"], "sk-ant-api03-canary");
        assert_eq!(out["anthropic-beta"], "a-1,b-2");
        assert_eq!(out["accept-encoding"], "identity");
    }

    #[test]
    fn a_slot_without_a_key_gets_none_not_even_the_callers() {
        let out = outward(&map(&[("authorization", "Bearer wp_x"), ("x-api-key", "wp_x")]), None);
        assert_eq!(out.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept-encoding"]);
    }

    #[test]
    fn a_connection_header_that_names_the_key_header_does_not_take_the_key_off() {
        let out = outward(&map(&[("connection", "x-api-key, anthropic-version")]), Some(&credential()));
        assert_eq!(out["x-api-key"], "sk-ant-api03-canary");
    }

    #[test]
    fn nothing_that_names_or_holds_a_secret_comes_back() {
        let out = back(
            &map(&[
                ("content-type", "application/json"),
                ("request-id", "req_1"),
                ("retry-after", "3037"),
                ("anthropic-ratelimit-requests-remaining", "0"),
                ("set-cookie", "a=b"),
                ("www-authenticate", "Bearer"),
                ("x-debug", "key was sk-ant-api03-canary, see?"),
                ("x-api-key", "sk-ant-api03-canary"),
                ("location", "https://evil.example"),
                ("transfer-encoding", "chunked"),
            ]),
            Some(&credential()),
        );
        let mut names: Vec<&str> = out.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let wanted = ["anthropic-ratelimit-requests-remaining", "content-type", "request-id", "retry-after"];
        assert_eq!(names, wanted);
    }
}
