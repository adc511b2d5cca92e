//! "did you mean": the known word most similar to a misspelled one.

/// The longest word that is compared: longer ones are no typing errors, and comparing takes quadratic time.
const WORD_BYTES_MAX: usize = 64;

/// The candidate most similar to `word`, if one is similar enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .take(10_000)
        .filter(|candidate| candidate.len() <= 2 * WORD_BYTES_MAX)
        .map(|candidate| (strsim::jaro_winkler(&word, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// The hint for an unknown word: the nearest candidate, or all of them if they are few.
pub fn hint(word: &str, candidates: &[&str], what: &str) -> Option<String> {
    if let Some(near) = nearest(word, candidates.iter().copied()) {
        return Some(format!("did you mean `{near}`?"));
    }
    if candidates.is_empty() || candidates.len() > 30 {
        return None;
    }
    let list: Vec<String> = candidates.iter().map(|candidate| format!("`{candidate}`")).collect();
    Some(format!("{what}: {}", list.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_listed() {
        assert_eq!(nearest("tiemout", ["timeout", "type", "retry"]), Some("timeout"));
        assert_eq!(nearest("zebra", ["timeout", "type", "retry"]), None);
        assert_eq!(hint("zebra", &["a1", "b2"], "known fields").unwrap(), "known fields: `a1`, `b2`");
    }
}
