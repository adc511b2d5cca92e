//! The workflow to run: a text, a program, or a registered name.

use std::path::Path;
use std::sync::Arc;

use switchyard_lang::Program;
use switchyard_runtime::Engine;

use crate::Error;

/// A workflow to run or to register.
///
/// A `&str` or `String` is the text of a workflow, YAML or JSON; [`Workflow::named`] is a registered one.
#[derive(Clone, Debug)]
pub struct Workflow(Source);

#[derive(Clone, Debug)]
enum Source {
    Text(String),
    Program(Arc<Program>),
    Named { name: String, version: Option<u32> },
}

/// A compiled workflow, and its version if it is a registered one.
pub(crate) struct Resolved {
    pub(crate) program: Arc<Program>,
    pub(crate) version: Option<u32>,
}

/// A workflow in the form that a server accepts.
pub(crate) enum ForServer {
    Named { name: String, version: Option<u32> },
    Definition(serde_json::Value),
}

impl Workflow {
    /// The newest version of the workflow registered under this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self(Source::Named { name: name.into(), version: None })
    }

    /// Selects a version of a registered workflow. Has no effect on other workflows.
    pub fn version(mut self, number: u32) -> Self {
        if let Source::Named { version, .. } = &mut self.0 {
            *version = Some(number);
        }
        self
    }

    /// Reads a workflow file, and the files of the child workflows that it names.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = std::fs::read(path).map_err(|source| Error::Read { path: path.into(), source })?;
        let base = path.parent().unwrap_or(Path::new(""));
        let name = path.to_string_lossy();
        Program::compile_bundled(&name, &text, base, &|path| std::fs::read(path))
            .map(|program| Arc::new(program).into())
            .map_err(Error::Workflow)
    }

    /// The form to send to a server: a name, or a definition. Definitions are compiled here first, so that errors have
    /// their places in the text.
    pub(crate) fn for_server(self) -> Result<ForServer, Error> {
        let definition = |program: &Program| serde_json::to_value(&*program.definition).map_err(Error::Value);
        Ok(match self.0 {
            Source::Named { name, version } => ForServer::Named { name, version },
            Source::Program(program) => ForServer::Definition(definition(&program)?),
            Source::Text(text) => {
                let program = Program::compile_text("workflow", text.as_bytes()).map_err(Error::Workflow)?;
                ForServer::Definition(definition(&program)?)
            }
        })
    }

    pub(crate) async fn resolve(self, engine: &Engine) -> Result<Resolved, Error> {
        match self.0 {
            Source::Program(program) => Ok(Resolved { program, version: None }),
            Source::Text(text) => {
                let program = Program::compile_text("workflow", text.as_bytes()).map_err(Error::Workflow)?;
                Ok(Resolved { program: Arc::new(program), version: None })
            }
            Source::Named { name, version } => {
                let (program, version) = engine.registered_program(&name, version).await?;
                Ok(Resolved { program, version: Some(version) })
            }
        }
    }
}

impl From<&str> for Workflow {
    fn from(text: &str) -> Self {
        Self(Source::Text(text.to_owned()))
    }
}

impl From<String> for Workflow {
    fn from(text: String) -> Self {
        Self(Source::Text(text))
    }
}

impl From<Arc<Program>> for Workflow {
    fn from(program: Arc<Program>) -> Self {
        Self(Source::Program(program))
    }
}
