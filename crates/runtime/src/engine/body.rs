//! The hash of a submission, stored with the run's idempotency key. It distinguishes a repetition from another
//! request under the same key, also if the two were sent to different releases.

use serde::Serialize;
use switchyard_core::{Hash, Payload};

/// The version of [`Encoding`].
const VERSION: u32 = 2;

/// The JSON that is hashed. Another field, name or order is another version.
#[derive(Serialize)]
struct Encoding<'a> {
    version: u32,
    definition: Hash,
    input: &'a Payload,
}

/// The parts of a submission that the hash covers.
pub(super) struct Body {
    pub(super) hash: Hash,
    /// The definition and input of a submission, which release 0.1 hashed.
    submitted: Option<(Hash, Payload)>,
}

impl Body {
    pub(super) fn of_submission(definition: Hash, input: &Payload) -> Self {
        let encoding = Encoding { version: VERSION, definition, input };
        // Numbers, text and JSON always serialise.
        let hash = Hash::of(&serde_json::to_vec(&encoding).unwrap_or_default());
        Self { hash, submitted: Some((definition, input.clone())) }
    }

    /// A fork is stored with the hash of its operation, in every release.
    pub(super) fn of_fork(asked: Hash) -> Self {
        Self { hash: asked, submitted: None }
    }

    /// Whether this submission is the one that `stored` is the hash of.
    pub(super) fn is(&self, stored: Hash) -> bool {
        let legacy = |(definition, input): &(Hash, Payload)| legacy_0_1(*definition, input);
        self.hash == stored || self.submitted.as_ref().map(legacy) == Some(stored)
    }
}

/// The hash that release 0.1 stored for a submission.
fn legacy_0_1(definition: Hash, input: &Payload) -> Hash {
    let text = match input {
        Payload::Json(json) => format!("{definition}\n{}", json.get()),
        Payload::Cas(reference) => format!("{definition}\ncas://{}", reference.hash),
    };
    Hash::of(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchyard_core::CasRef;

    use super::*;

    fn inline() -> Payload {
        Payload::from_value(&json!({"n": 1, "who": "ada"}))
    }

    fn large() -> Payload {
        Payload::Cas(CasRef { hash: Hash([2; 32]), bytes: 70_000 })
    }

    #[test]
    fn the_encoding_of_a_submission_stays_as_it_is() {
        let text = |input: &Payload| {
            let definition = Hash([1; 32]);
            serde_json::to_string(&Encoding { version: VERSION, definition, input })
        };
        let (one, two) = ("01".repeat(32), "02".repeat(32));
        assert_eq!(
            text(&inline()).unwrap(),
            format!(
                r#"{{"version":2,"definition":"sha256:{one}","input":{{"json":{{"n":1,"who":"ada"}}}}}}"#
            )
        );
        assert_eq!(
            text(&large()).unwrap(),
            format!(
                r#"{{"version":2,"definition":"sha256:{one}","input":{{"cas":{{"hash":"sha256:{two}","bytes":70000}}}}}}"#
            )
        );
        let hashes = [inline(), large()].map(|input| Body::of_submission(Hash([1; 32]), &input).hash.hex());
        assert_eq!(
            hashes,
            [
                "8567b28ed09f59cd01b53088255dde15b099d651d8b71e4a1411fe73a38b9ad7",
                "0e4744cca3ddd960fc94378b3af55f1c6a02c13b8ebbb780cf7d14e9bb60d59c"
            ]
        );
    }

    #[test]
    fn what_release_0_1_stored_is_recognised() {
        let stored = [
            "5a8efe66beddde8915544c5b9d52818cdf05cb1f8b4bca40051d5294f2f583d2",
            "84f4c4a7c08bfeef7c90e2ab6c5ada2d75bc7ee347aa62e35004c30a62c14eb5",
        ];
        for (input, stored) in [inline(), large()].into_iter().zip(stored) {
            let stored: Hash = format!("sha256:{stored}").parse().unwrap();
            assert!(Body::of_submission(Hash([1; 32]), &input).is(stored));
            assert!(!Body::of_submission(Hash([3; 32]), &input).is(stored), "another definition");
            assert!(!Body::of_submission(Hash([1; 32]), &Payload::null()).is(stored), "another input");
            assert!(!Body::of_fork(Hash([1; 32])).is(stored));
        }
    }
}
