//! Parses a page into the steps of its reader.

#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Save { file: String, text: String },
    Run { command: String, expected: Vec<String> },
}

/// The steps of a reader of the page, in order.
pub(super) fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut save_as = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(file) = named(line) {
            save_as = Some(file);
        }
        let Some(language) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match (save_as.take(), language) {
            (_, "console") => steps.extend(commands(&block)),
            (Some(file), _) => steps.push(Step::Save { file, text: block.join("\n") + "\n" }),
            (None, _) => {}
        }
    }
    steps
}

/// The file that a paragraph asks to save the next block as.
fn named(line: &str) -> Option<String> {
    let rest = line.split_once("ave this as `")?.1;
    Some(rest.split('`').next()?.to_owned())
}

fn commands(block: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut continued = false;
    for line in block {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step::Run { command: command.to_owned(), expected: Vec::new() }),
            (None, Some(Step::Run { command, .. })) if continued => {
                command.push('\n');
                command.push_str(line);
            }
            (None, Some(Step::Run { expected, .. })) => expected.push((*line).to_owned()),
            (None, _) => panic!("a `console` block begins with `$ `, not with `{line}`"),
        }
        continued = matches!(steps.last(), Some(Step::Run { command, expected }) if expected.is_empty() && command.ends_with('\\'));
    }
    steps
}

#[test]
fn a_page_is_read_in_order() {
    let page = "Save this as `a.yaml`:\n\n```yaml\nname: a\n```\n\n```sh\nnot walked\n```\n\n```console\n$ one \\\n  two\nout\n$ three\n```\n";
    let run = |command: &str, expected: &[&str]| Step::Run {
        command: command.to_owned(),
        expected: expected.iter().map(|line| (*line).to_owned()).collect(),
    };
    let save = Step::Save { file: "a.yaml".to_owned(), text: "name: a\n".to_owned() };
    assert_eq!(steps(page), [save, run("one \\\n  two", &["out"]), run("three", &[])]);
}
