//! The `Retry-After` header: how long to wait before the next attempt.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use switchyard_core::Timestamp;

/// The longest delay that a server can request.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

/// How long to wait from now on, if the response says so: a number of seconds, or an HTTP date.
pub(super) fn retry_after(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match value.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        // A number of seconds that does not fit is the longest duration.
        Err(_) if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => Duration::MAX,
        Err(_) => until(httpdate::parse_http_date(value).ok()?, now),
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

fn until(moment: SystemTime, now: Timestamp) -> Duration {
    let since_epoch = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Duration::from_millis(u64::try_from(now.as_millis()).unwrap_or_default());
    since_epoch.saturating_sub(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read_and_bounded() {
        // 2023-11-14T22:13:20Z
        let now = Timestamp::from_millis(1_700_000_000_000);
        let asked = |status: u16, value: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
            let wait = retry_after(StatusCode::from_u16(status).unwrap(), &headers, now);
            wait.map(|wait| wait.as_secs())
        };
        assert_eq!(asked(429, "7"), Some(7));
        assert_eq!(asked(503, " 7 "), Some(7));
        assert_eq!(asked(503, "0"), Some(0));
        assert_eq!(asked(503, "86400"), Some(3_600));
        assert_eq!(asked(503, "99999999999999999999999"), Some(3_600));
        assert_eq!(asked(503, "Tue, 14 Nov 2023 22:14:20 GMT"), Some(60));
        assert_eq!(asked(429, "Tuesday, 14-Nov-23 22:14:20 GMT"), Some(60));
        assert_eq!(asked(503, "Tue, 14 Nov 2023 22:00:00 GMT"), Some(0));
        assert_eq!(asked(503, "Mon, 14 Nov 2033 22:00:00 GMT"), Some(3_600));
        for (status, value) in [(503, "soon"), (503, "-1"), (503, "1.5"), (503, ""), (500, "7"), (200, "7")] {
            assert_eq!(asked(status, value), None, "{status} {value}");
        }
    }
}
