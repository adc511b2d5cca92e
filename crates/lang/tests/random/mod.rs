//! Random expressions over `input.n`, `name`, `list`, `z`, `f`, `big`, and the node `a`.

/// Takes choices from random bytes, so that proptest can shrink a failing expression.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn of(&mut self, count: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or_default()) % count
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.of(from.len())]
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Int,
    Text,
    Bool,
    List,
    Any,
}

/// An expression that often has a value.
pub(crate) fn expression(bytes: &[u8], depth: usize) -> String {
    of_kind(&mut Choices(bytes.iter()), Kind::Any, depth)
}

fn of_kind(choices: &mut Choices<'_>, kind: Kind, depth: usize) -> String {
    use Kind::{Any, Bool, Int, List, Text};
    if depth == 0 {
        return leaf(choices, kind);
    }
    let template = match kind {
        Int => choices.pick(&[
            "(I + I)",
            "(I - I)",
            "(I * I)",
            "(I / I)",
            "(I % I)",
            "-I",
            "size(T)",
            "L.size()",
            "T.indexOf(T)",
            "T.lastIndexOf(T)",
            "(B ? I : I)",
            "L[I]",
            "{'a': I, T: I}[T]",
            "int(T)",
            "math.greatest(I, I)",
            "[I, I].sort()[0]",
            "L.map(x, x)[?I].orValue(I)",
            "math.abs(I)",
            "input.?missing.orValue(I)",
            "optional.of(I).or(optional.none()).value()",
            "input.n",
            "input.z.b",
            "nodes.a.output.risk",
        ]),
        Text => choices.pick(&[
            "(T + T)",
            "T.replace(T, T)",
            "T.replace(T, T, I)",
            "T.lowerAscii()",
            "T.upperAscii()",
            "T.trim()",
            "T.reverse()",
            "T.substring(I)",
            "T.substring(I, I)",
            "T.charAt(I)",
            "string(I)",
            "string(B)",
            "['a', T].join(T)",
            "T.split(T).join()",
            "'%s-%d'.format([T, I])",
            "strings.quote(T)",
            "(B ? T : T)",
            "base64.encode(bytes(T))",
            "input.name",
            "run.name",
            "L[I]",
            "T.split(T, I)[0]",
            "string(type(A))",
            "string(duration('90s'))",
        ]),
        Bool => choices.pick(&[
            "(B && B)",
            "(B || B)",
            "!B",
            "(I < I)",
            "(I >= I)",
            "(A == A)",
            "(A != A)",
            "(A in L)",
            "T.startsWith(T)",
            "T.endsWith(T)",
            "T.contains(T)",
            "T.matches('[a-c]+')",
            "T.matches(T)",
            "matches(T, T)",
            "(T < T)",
            "L.all(x, x == A)",
            "L.exists(x, x == A)",
            "L.exists_one(x, x == I)",
            "has(input.name)",
            "has(input.q)",
            "input.?z.hasValue()",
            "(T in {'a': A, T: A})",
            "L.all(x, L.exists(y, x == y))",
            "L.all(x, x > I)",
            "has(nodes.a.output)",
            "nodes.?a.hasValue()",
            "(type(A) == type(A))",
            "([I] == [I])",
            "({T: I} == {T: I})",
        ]),
        List => choices.pick(&[
            "[A, A]",
            "[?input.?name, A]",
            "(L + L)",
            "L.map(x, A)",
            "L.map(x, [x, A])",
            "L.filter(x, x != A)",
            "L.map(x, x != A, x)",
            "lists.range(I)",
            "T.split(T)",
            "L.slice(I, I)",
            "L.flatten()",
            "L.flatten(I)",
            "L.distinct()",
            "L.reverse()",
            "L.sort()",
            "L.sortBy(x, x)",
            "(B ? L : L)",
            "input.list",
            "L.map(x, L.map(y, [x, y]))",
            "input.z.map(k, k).sort()",
            "nodes.a.output.body.items",
            "[1, 1u, 1.0, '1', true].distinct()",
            "{'k': L}.k",
        ]),
        Any => choices.pick(&[
            "I",
            "T",
            "B",
            "L",
            "{T: A}",
            "{'a': A, ?'b': input.?name}",
            "input.f",
            "input.big",
            "null",
            "timestamp('2026-01-01T00:00:00Z').getFullYear()",
            "optional.of(A)",
            "optional.none()",
            "input.z",
            "input",
            "A.b",
            "A[A]",
            "dyn(A)",
        ]),
    };
    let mut text = String::new();
    let mut quoted = false;
    let letters: Vec<char> = template.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        quoted ^= *letter == '\'';
        let alone = |at: Option<usize>| {
            at.and_then(|at| letters.get(at)).is_none_or(|c| !c.is_alphanumeric() && *c != '_')
        };
        let inner = match letter {
            'I' => Int,
            'T' => Text,
            'B' => Bool,
            'L' => List,
            'A' => Any,
            _ => Any,
        };
        if !quoted && "ITBLA".contains(*letter) && alone(at.checked_sub(1)) && alone(Some(at + 1)) {
            text.push_str(&of_kind(choices, inner, depth - 1));
        } else {
            text.push(*letter);
        }
    }
    text
}

fn leaf(choices: &mut Choices<'_>, kind: Kind) -> String {
    let leaf = match kind {
        Kind::Int => choices.pick(&["0", "1", "2", "3", "-1", "input.n", "9223372036854775807"]),
        Kind::Text => choices.pick(&["''", "'a'", "'abc'", "'b,c'", "','", "'äö'", "input.name", "'1'"]),
        Kind::Bool => choices.pick(&["true", "false", "1 / 0 == 1"]),
        Kind::List => choices.pick(&[
            "[]",
            "[1, 2, 3]",
            "['a', 'b']",
            "input.list",
            "[[1], [2, [3]]]",
            "[true, 'x', 1.5]",
        ]),
        Kind::Any => choices.pick(&[
            "1",
            "'a'",
            "true",
            "null",
            "input.f",
            "2u",
            "b'x'",
            "1.0",
            "input.list",
            "input.z",
        ]),
    };
    leaf.to_owned()
}
