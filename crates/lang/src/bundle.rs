//! Bundling: replaces references to child workflow files by their contents before submission.

use std::io;
use std::path::{Component, Path, PathBuf};

use switchyard_base::{Diagnostic, Diagnostics};

use crate::decode;
use crate::limits;
use crate::problem::{At, Problems};
use crate::source::Tree;
use crate::spec::{Definition, NodeSpec};

/// Reads a file.
pub type Loader<'a> = dyn Fn(&Path) -> io::Result<Vec<u8>> + 'a;

/// Replaces every `file:` in `definition` by the content of the file, relative to `base_dir`, and likewise in the files
/// that it reads.
pub fn bundle(definition: &mut Definition, base_dir: &Path, loader: &Loader<'_>) -> Result<(), Diagnostics> {
    Bundling { loader, open: Vec::new() }.nodes(definition.nodes.iter_mut(), base_dir, "nodes")
}

struct Bundling<'a> {
    loader: &'a Loader<'a>,
    /// The files that are being read, outermost first.
    open: Vec<PathBuf>,
}

impl Bundling<'_> {
    fn nodes<'n>(
        &mut self,
        nodes: impl Iterator<Item = (&'n String, &'n mut NodeSpec)>,
        dir: &Path,
        path: &str,
    ) -> Result<(), Diagnostics> {
        for (id, node) in nodes {
            let path = format!("{path}.{id}");
            if let Some(compensate) = &mut node.common.compensate {
                self.kind(&mut compensate.kind, dir, &format!("{path}.compensate"))?;
            }
            self.kind(&mut node.kind, dir, &path)?;
        }
        Ok(())
    }

    fn kind(&mut self, kind: &mut crate::spec::KindSpec, dir: &Path, path: &str) -> Result<(), Diagnostics> {
        let Some(body) = kind.body_mut() else { return Ok(()) };
        if let Some(nodes) = &mut body.nodes {
            self.nodes(nodes.iter_mut(), dir, &format!("{path}.nodes"))?;
        }
        if let Some(definition) = &mut body.definition {
            self.nodes(definition.nodes.iter_mut(), dir, &format!("{path}.definition.nodes"))?;
        }
        if let Some(file) = body.file.take() {
            body.definition = Some(Box::new(self.load(&normal(&dir.join(file)), path)?));
        }
        Ok(())
    }

    fn load(&mut self, file: &Path, path: &str) -> Result<Definition, Diagnostics> {
        let path = format!("{path}.file");
        if let Some(start) = self.open.iter().position(|open| open == file) {
            let mut cycle: Vec<String> =
                self.open[start..].iter().map(|file| file.display().to_string()).collect();
            cycle.push(file.display().to_string());
            return Err(problem(path, format!("files include each other: {}", cycle.join(" → "))));
        }
        if self.open.len() >= limits::BODY_DEPTH_MAX {
            let message = format!("files include each other deeper than {} levels", limits::BODY_DEPTH_MAX);
            return Err(problem(path, message));
        }
        let shown = file.display().to_string();
        let bytes =
            (self.loader)(file).map_err(|error| problem(path, format!("cannot read `{shown}`: {error}")))?;
        let (tree, text) = Tree::parse(&shown, &bytes)?;
        let mut problems = Problems::default();
        let decoded = decode::definition(&tree, &At::Root, &mut problems);
        let mut definition =
            decode::finish(decoded, problems, Some((&tree, &text))).map_err(|error| error.in_file(&shown))?;
        self.open.push(file.to_owned());
        let dir = file.parent().unwrap_or(Path::new("")).to_owned();
        self.nodes(definition.nodes.iter_mut(), &dir, "nodes").map_err(|error| match error.file {
            None => error.in_file(&shown),
            Some(_) => error,
        })?;
        self.open.pop();
        Ok(definition)
    }
}

fn problem(path: String, message: String) -> Diagnostics {
    Diagnostics::one(Diagnostic { message, hint: None, path, position: None })
}

/// The path without `.` and, where possible, without `..`, so that a file that is read again is recognised.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::Program;
    use crate::program::{Body, CompiledKind};

    fn compile(files: &[(&str, &str)]) -> Result<Program, Diagnostics> {
        let files: HashMap<PathBuf, &str> =
            files.iter().map(|(path, text)| (PathBuf::from(path), *text)).collect();
        let loader = |path: &Path| match files.get(path) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
        };
        let main = files[Path::new("/w/main.yaml")];
        Program::compile_bundled("main.yaml", main.as_bytes(), Path::new("/w"), &loader)
    }

    const LEAF: &str = "name: leaf\nnodes: {a: {type: transform}}";

    #[test]
    fn files_are_put_in_place() {
        let program = compile(&[
            ("/w/main.yaml", "name: m\nnodes: {c: {type: workflow, file: ./sub/child.yaml}}"),
            ("/w/sub/child.yaml", "name: c\nnodes: {d: {type: map, items: [1], file: ../leaf.yaml}}"),
            ("/w/leaf.yaml", LEAF),
        ])
        .unwrap();
        let CompiledKind::Workflow(child) = &program.nodes[0].kind else { panic!() };
        let Body::Inline(child) = &child.body else { panic!() };
        assert_eq!(&*child.ir.name, "c");
        assert!(program.canonical.contains("\"name\":\"leaf\"") && !program.canonical.contains("file"));
        assert_eq!(Program::from_canonical(&program.canonical).unwrap().hash, program.hash);
    }

    #[test]
    fn missing_files_and_circles_are_refused() {
        let main = "name: m\nnodes: {c: {type: workflow, file: a.yaml}}";
        let again = "name: a\nnodes: {c: {type: workflow, file: ./main.yaml}}";
        let error = compile(&[("/w/main.yaml", main)]).unwrap_err();
        assert_eq!(error.to_string(), "main.yaml:nodes.c.file: cannot read `/w/a.yaml`: no such file");
        let error = compile(&[("/w/main.yaml", main), ("/w/a.yaml", again)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "/w/main.yaml:nodes.c.file: files include each other: /w/a.yaml → /w/main.yaml → /w/a.yaml"
        );
        let error = compile(&[("/w/main.yaml", main), ("/w/a.yaml", "name: a\nnods: {}")]).unwrap_err();
        assert!(
            error.to_string().contains("/w/a.yaml:2:1: unknown field `nods`\n  hint: did you mean `nodes`?"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_was_not_put_in_place_is_refused() {
        let text = "name: m\nnodes: {c: {type: workflow, file: a.yaml}}";
        assert_eq!(
            Program::compile_text("m.yaml", text.as_bytes()).unwrap_err().to_string(),
            "m.yaml:2:35: the file `a.yaml` is not here\n  hint: submit it with the CLI, which puts the file's content in place"
        );
    }
}
