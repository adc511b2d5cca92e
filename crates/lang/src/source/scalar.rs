//! The meaning of plain scalars: the core schema of YAML 1.2, which includes JSON's literals.

use serde_json::Number;

use super::Data;

/// The data of an unquoted scalar, or the reason why it has none.
pub(super) fn plain(text: &str) -> Result<Data, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Data::Null),
        "true" | "True" | "TRUE" => return Ok(Data::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Data::Bool(false)),
        _ => {}
    }
    if is_special_float(text) {
        return Err(format!("`{text}` is not a number that JSON can carry"));
    }
    match number(text) {
        Some(Ok(number)) => Ok(Data::Number(number)),
        Some(Err(message)) => Err(message),
        None => Ok(Data::String(text.to_owned())),
    }
}

fn is_special_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// Parses a number. `None` if the text does not look like a number at all.
fn number(text: &str) -> Option<Result<Number, String>> {
    let too_large = || format!("the number `{text}` is too large");
    if let Some(radix) = radix_of(text) {
        return Some(u64::from_str_radix(&text[2..], radix).map(Number::from).map_err(|_| too_large()));
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        let digits = text.strip_prefix('+').unwrap_or(text);
        let signed = digits.parse::<i64>().map(Number::from);
        let whole = signed.or_else(|_| digits.parse::<u64>().map(Number::from));
        // An integer beyond 64 bits becomes a float, as in the API's JSON parser.
        let float = || digits.parse().ok().and_then(Number::from_f64).ok_or_else(too_large);
        return Some(whole.or_else(|_| float()));
    }
    if !looks_like_float(unsigned) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    Some(Number::from_f64(value).ok_or_else(too_large))
}

fn radix_of(text: &str) -> Option<u32> {
    let radix = match text.get(..2)? {
        "0x" => 16,
        "0o" => 8,
        _ => return None,
    };
    let digits = &text[2..];
    (!digits.is_empty() && digits.chars().all(|c| c.is_digit(radix))).then_some(radix)
}

/// `( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn looks_like_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mantissa_fits = digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !unsigned.is_empty() && digits(unsigned)
    });
    mantissa_fits && exponent_fits
}
