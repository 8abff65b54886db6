//! A provider's error: short, so that it can be gathered, unpacked, searched for keys and told in the log.

use std::io::Read as _;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use hyper::body::{Body, Frame};
use hyper::header::{CONTENT_ENCODING, HeaderMap};

use super::blot;
use super::silence::Silence;
use crate::keys::answer::CutError;
use crate::keys::meter::{Counted, End, Watch};
use crate::keys::slot::Api;

/// The longest error that is passed on, in bytes, also once it is unpacked.
const LONGEST: usize = 256 * 1024;

/// An error as the caller gets it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::keys) struct Gathered {
    /// Without anything that looks like a key. `None` when it cannot be read, or is longer than any error.
    pub(in crate::keys) body: Option<Bytes>,
    /// What it says of itself, for the log.
    pub(in crate::keys) kind: String,
    /// The same.
    pub(in crate::keys) message: String,
}

/// Reads a whole error. `needle` is the key that was put on the request.
pub(in crate::keys) async fn gather(
    mut from: impl Body<Data = Bytes, Error: Into<CutError>> + Unpin,
    headers: &HeaderMap,
    idle: Duration,
    needle: &[u8],
) -> Gathered {
    let mut silence = Silence::new(idle);
    let mut text = Vec::new();
    let whole = loop {
        let next = std::future::poll_fn(|context| match Pin::new(&mut from).poll_frame(context) {
            std::task::Poll::Ready(frame) => std::task::Poll::Ready(Some(frame)),
            std::task::Poll::Pending => silence.poll(context).map(|()| None),
        });
        match next.await.map(|frame| frame.map(|frame| frame.map(Frame::into_data))) {
            Some(Some(Ok(Ok(data)))) if text.len() + data.len() <= LONGEST => text.extend_from_slice(&data),
            Some(Some(Ok(Err(_)))) => {}
            Some(None) => break true,
            None | Some(Some(_)) => break false,
        }
        silence.broken();
    };
    let unpacked = if whole { unpack(headers, text) } else { None };
    let Some(mut text) = unpacked else {
        return Gathered { body: None, kind: String::new(), message: String::new() };
    };
    blot::blot_keys(&mut text, needle);
    let mut watch = Watch::new(Api::Anthropic, false, Counted::default());
    watch.see(&text);
    let (kind, message) = match watch.end() {
        End::Failed(failure) => (failure.kind, failure.message),
        End::Whole | End::Cut => (String::new(), plain(&text)),
    };
    Gathered { body: Some(text.into()), kind, message }
}

/// The first line of an error that is no JSON.
fn plain(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text.get(..400).unwrap_or(text)).into_owned();
    text.lines().next().unwrap_or_default().chars().filter(|sign| !sign.is_control()).take(200).collect()
}

fn unpack(headers: &HeaderMap, text: Vec<u8>) -> Option<Vec<u8>> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    let coding = codings.next().map(|coding| coding.as_bytes().trim_ascii().to_ascii_lowercase());
    match coding.as_deref() {
        _ if codings.next().is_some() => None,
        None | Some(b"" | b"identity") => Some(text),
        Some(b"gzip" | b"x-gzip") => {
            let mut plain = Vec::new();
            let mut unpacked = MultiGzDecoder::new(text.as_slice()).take(LONGEST as u64 + 1);
            unpacked.read_to_end(&mut plain).ok()?;
            (plain.len() <= LONGEST).then_some(plain)
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    async fn gathered(coding: Option<&str>, text: Vec<u8>) -> Gathered {
        let mut headers = HeaderMap::new();
        if let Some(coding) = coding {
            headers.insert(CONTENT_ENCODING, coding.parse().unwrap());
        }
        let body = Full::new(Bytes::from(text)).map_err(|never| match never {});
        let body: crate::keys::answer::Reply = body.boxed_unsync();
        gather(body, &headers, Duration::from_secs(5), b"own-key").await
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(text).unwrap();
        packer.finish().unwrap()
    }

    #[tokio::test]
    async fn an_error_is_unpacked_told_and_rid_of_keys() {
        let text = br#"{"type":"error","error":{"type":"invalid_request_error","message":"temperature: no own-key"}}"#;
        for (coding, body) in
            [(None, text.to_vec()), (Some("gzip"), packed(text)), (Some("X-GZIP"), packed(text))]
        {
            let found = gathered(coding, body).await;
            assert_eq!(
                (found.kind.as_str(), found.message.as_str()),
                ("invalid_request_error", "temperature: no *******")
            );
            let told = String::from_utf8(found.body.unwrap().to_vec()).unwrap();
            assert_eq!(told, String::from_utf8_lossy(text).replace("own-key", "*******"));
        }
        let found = gathered(None, b"upstream sent sk-ant-api03-0123456789abcdef\nno JSON".to_vec()).await;
        assert_eq!((found.kind.as_str(), found.message.starts_with("upstream sent sk-***")), ("", true));
    }

    #[tokio::test]
    async fn what_cannot_be_read_or_is_no_error_any_more_is_not_passed_on() {
        let bomb = packed(&vec![b'a'; LONGEST + 1]);
        let cut = packed(b"abc").into_iter().take(12).collect();
        for (coding, body) in [
            (Some("br"), b"own-key".to_vec()),
            (Some("gzip, gzip"), packed(b"a")),
            (Some("gzip"), b"own-key".to_vec()),
            (Some("gzip"), cut),
            (Some("gzip"), bomb),
            (None, vec![b'a'; LONGEST + 1]),
        ] {
            assert_eq!(gathered(coding, body).await.body, None, "{coding:?}");
        }
    }
}
