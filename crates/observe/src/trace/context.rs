//! W3C trace context: the headers `traceparent` and `tracestate`.

use switchyard_core::{SpanId, TraceLink};

/// The longest `tracestate` that is propagated; the W3C standard requires no more.
const STATE_BYTES_MAX: usize = 512;

const SAMPLED: u8 = 1;

/// The headers of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers {
    pub traceparent: String,
    pub tracestate: Option<String>,
}

impl Headers {
    pub(crate) fn new(link: &TraceLink, span: SpanId) -> Self {
        let flags = if link.sampled { SAMPLED } else { 0 };
        Self {
            traceparent: format!("00-{}-{span}-{flags:02x}", link.trace),
            tracestate: link.state.as_deref().map(str::to_owned),
        }
    }
}

/// The trace context of a caller. Invalid headers are ignored, as the W3C standard requires.
pub fn incoming(traceparent: &str, tracestate: Option<&str>) -> Option<TraceLink> {
    let mut parts = traceparent.trim().split('-');
    let version = hex_byte(parts.next()?)?;
    let (trace, span, flags) = (parts.next()?, parts.next()?, hex_byte(parts.next()?)?);
    // Versions after 00 may append fields; version 00 has exactly four.
    if version == 0xff || (version == 0 && parts.next().is_some()) {
        return None;
    }
    let state = tracestate.map(str::trim).filter(|state| is_passed_on(state));
    Some(TraceLink {
        trace: trace.parse().ok()?,
        parent: Some(span.parse().ok()?),
        sampled: flags & SAMPLED != 0,
        state: state.map(Into::into),
    })
}

fn is_passed_on(state: &str) -> bool {
    !state.is_empty()
        && state.len() <= STATE_BYTES_MAX
        && state.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn hex_byte(text: &str) -> Option<u8> {
    let digits = text.len() == 2 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    digits.then(|| u8::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_came_in_goes_out() {
        let link = incoming(GIVEN, Some("congo=t61rcWkgMzE,rojo=1")).unwrap();
        let headers = Headers::new(&link, link.parent.unwrap());
        assert_eq!(headers.traceparent, GIVEN);
        assert_eq!(headers.tracestate.as_deref(), Some("congo=t61rcWkgMzE,rojo=1"));
        assert!(incoming(&format!("cc{}-what-comes-later", &GIVEN[2..]), None).is_some());
        assert!(!incoming(&format!("{}0", &GIVEN[..54]), None).unwrap().sampled);
    }

    #[test]
    fn what_is_not_valid_is_not_there() {
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        ] {
            assert_eq!(incoming(text, None), None, "{text}");
        }
        let long = "a=".to_owned() + &"b".repeat(600);
        assert_eq!(incoming(GIVEN, Some(&long)).unwrap().state, None);
    }
}
