//! Repeats a change whose outcome is not known.

use switchyard_core::OperationId;

use crate::errors::Failure;
use crate::settings::Settings;
use crate::target::{self, Target};

/// Of commands that change something.
#[derive(Debug, clap::Args)]
pub(crate) struct OperationArgs {
    /// Repeat a change under the id that was shown when it was not known whether it was made
    #[arg(long, value_name = "ID")]
    operation_id: Option<OperationId>,
}

impl OperationArgs {
    pub(crate) fn id(&self) -> Option<OperationId> {
        self.operation_id.clone()
    }

    /// The target of the command; its next change has the given operation id.
    pub(crate) async fn find(&self, settings: &Settings) -> Result<Box<dyn Target>, Failure> {
        let mut place = target::find(settings).await?;
        if let Some(id) = self.id() {
            place.repeat(id);
        }
        Ok(place)
    }
}
