//! A call on the device of the browser.

use tokenwise::Mask;
use tokenwise_catalogue::{self as catalogue, Array as Data};
use tokenwise_gpu::{Engine, GpuError, Report};
use wasm_bindgen::prelude::JsValue;

use super::{Call, Either};
use crate::{
    batch::Batch,
    error::{refused, Result},
    read::{reals, zeros, OwnGroups, Precision},
};

/// A result for JavaScript, and the report of the engine. The device computes in `f32`: a call in `f64` has none.
pub(crate) type Answer = (JsValue, Option<Report>);

impl Call {
    /// The call without arrays of the caller's, who may hand them over to a worker before the device has answered:
    /// logits are copied now, results will be fresh arrays.
    pub(crate) fn detached(mut self) -> Result<Self> {
        for (name, array) in std::mem::take(&mut self.logits) {
            match &mut self.columns {
                // the engine splits rows as the device requires
                Either::Single(columns) => columns.set(name, Data::Real(reals(name, &array)?)),
                Either::Double(columns) => columns.set(name, Data::Real(reals(name, &array)?)),
            }
        }
        self.into.fill(None);
        Ok(self)
    }

    /// Runs it on an engine. With a layout in place of a batch no slot is kept, as in [`Call::alone`].
    pub(crate) async fn run_on(&self, engine: &Engine, batch: Option<&Batch>) -> Result<Answer> {
        let mask;
        let batch = match (batch, &self.layout) {
            (Some(batch), _) => Some(batch.view()?),
            (None, Some(layout)) => {
                let layout = layout.view()?;
                mask = zeros(layout.tokens())?;
                Some(tokenwise::Batch::new(layout, Mask::new(&mask))?)
            }
            (None, None) => None,
        };
        let columns = match &self.columns {
            Either::Single(columns) => columns,
            Either::Double(_) => return Ok((self.run(batch)?, None)),
        };
        let groups = self.groups.as_ref().map(OwnGroups::view).transpose()?;
        let mut outputs = self.room_for(batch.as_ref(), groups.as_ref(), columns)?;
        let mut call = catalogue::Call::new(batch, groups, columns, &self.config, &mut outputs);
        let report = engine.call(self.entry, &mut call).await;
        let numbers = call.numbers;
        let report = report.map_err(|error| match error {
            GpuError::Refused(refusal) => refused(refusal, f32::ARRAY),
            other => other.into(),
        })?;
        Ok((self.write(&numbers, outputs)?, Some(report)))
    }
}
