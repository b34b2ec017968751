//! Any formula by its name, on the device.

use std::time::Instant;

use burn::tensor::{DType, Tensor};
use serde::Serialize;
use tokenwise::{
    advantage::{GaeConfig, GroupConfig, WhitenConfig},
    loss::{EntropyBonusConfig, KlLossConfig, ValueConfig},
    Batch, Groups,
};
use tokenwise_catalogue::{Call, Columns, Domain, Element, Entry, Kind, Value};
use tokenwise_gpu::{Column, GpuError, Reason, Report};

use super::OnDevice;
use crate::{
    call::{entry, run, Output, Results},
    inputs::{Input, Inputs, Named},
    loss::{joined, loss_entry},
    typed::{Gae, GaeInput, KlInput, ValueInput},
    Loss, Result,
};

impl OnDevice {
    /// [`call()`](crate::call()) on the device. What it cannot answer, the host does: a formula without a kernel
    /// (`tokenwise_gpu::coverage`), numbers that are not finite, a failed device. [`Results::report`] says who
    /// computed.
    ///
    /// # Errors
    ///
    /// As [`call()`](crate::call()); [`Error::Device`](crate::Error::Device) for a tensor of another
    /// device, [`Error::DType`](crate::Error::DType) for f64.
    pub fn call<'a>(
        &self,
        name: &str,
        domain: impl Into<Domain<'a>>,
        inputs: &Inputs<'_>,
        config: &(impl Serialize + ?Sized),
    ) -> Result<Results> {
        let entry = entry(name)?;
        self.run(entry, domain.into(), &Named::new(entry, inputs)?, &Value::of(config)?)
    }

    /// [`loss()`](crate::loss()) on the device, gradient included; otherwise as [`Self::call`].
    ///
    /// # Errors
    ///
    /// As [`Self::call`], and [`Error::NotALoss`](crate::Error::NotALoss).
    pub fn loss<'a>(
        &self,
        name: &str,
        domain: impl Into<Domain<'a>>,
        inputs: &Inputs<'_>,
        config: &(impl Serialize + ?Sized),
    ) -> Result<Loss> {
        let entry = loss_entry(name)?;
        let named = Named::new(entry, inputs)?;
        let results = self.run(entry, domain.into(), &named, &Value::of(config)?)?;
        joined(entry, &named, results)
    }

    /// [`value_loss()`](crate::value_loss()) on the device.
    ///
    /// # Errors
    ///
    /// As [`Self::call`].
    pub fn value_loss<const D: usize>(
        &self,
        batch: &Batch<'_>,
        input: ValueInput<'_, D>,
        config: &ValueConfig<'_>,
    ) -> Result<Loss> {
        self.loss("value_loss", batch, &input.named(), config)
    }

    /// [`kl_loss()`](crate::kl_loss()) on the device.
    ///
    /// # Errors
    ///
    /// As [`Self::call`].
    pub fn kl_loss<const D: usize>(
        &self,
        batch: &Batch<'_>,
        input: KlInput<'_, D>,
        config: &KlLossConfig<'_>,
    ) -> Result<Loss> {
        self.loss("kl_loss", batch, &input.named(), config)
    }

    /// [`entropy_bonus()`](crate::entropy_bonus()) on the device.
    ///
    /// # Errors
    ///
    /// As [`Self::call`].
    pub fn entropy_bonus<const D: usize>(
        &self,
        batch: &Batch<'_>,
        entropy: &Tensor<D>,
        config: &EntropyBonusConfig<'_>,
    ) -> Result<Loss> {
        self.loss("entropy_bonus", batch, &Inputs::new().with("entropy", entropy), config)
    }

    /// [`gae()`](crate::gae()) on the device.
    ///
    /// # Errors
    ///
    /// As [`Self::call`].
    pub fn gae<const D: usize>(&self, batch: &Batch<'_>, input: GaeInput<'_, D>, config: &GaeConfig) -> Result<Gae<D>> {
        self.call("gae", batch, &input.named(), config)?.try_into()
    }

    /// [`group_relative()`](crate::group_relative()) on the device.
    ///
    /// # Errors
    ///
    /// As [`Self::call`].
    pub fn group_relative(&self, groups: &Groups<'_>, scores: &Tensor<1>, config: &GroupConfig) -> Result<Tensor<1>> {
        self.call("group_relative", groups, &Inputs::new().with("scores", scores), config)?.tensor("out")
    }

    /// [`broadcast()`](crate::broadcast()) on the device.
    ///
    /// # Errors
    ///
    /// As [`Self::call`].
    pub fn broadcast(&self, batch: &Batch<'_>, values: &Tensor<1>) -> Result<Tensor<1>> {
        self.call("broadcast", batch, &Inputs::new().with("values", values), &())?.tensor("out")
    }

    /// [`whiten()`](crate::whiten()) on the device.
    ///
    /// # Errors
    ///
    /// As [`Self::call`].
    pub fn whiten<const D: usize>(
        &self,
        batch: &Batch<'_>,
        values: &Tensor<D>,
        config: &WhitenConfig,
    ) -> Result<Tensor<D>> {
        self.call("whiten", batch, &Inputs::new().with("values", values), config)?.tensor("out")
    }

    fn run(&self, entry: &'static Entry, domain: Domain<'_>, named: &Named<'_, '_>, config: &Value) -> Result<Results> {
        let begin = Instant::now();
        let resident = self.resident(named)?;
        let reason = match self.try_run(entry, domain, named, config, &resident)? {
            Ok(results) => return Ok(results),
            Err(reason) => reason,
        };
        let mut results = run(entry, domain, named, config)?;
        results.report = Some(Report::core(reason, Some(begin.elapsed())));
        Ok(results)
    }

    /// The inputs that kernels read, on the device.
    fn resident(&self, named: &Named<'_, '_>) -> Result<Vec<(&'static str, Column)>> {
        let mut columns = Vec::new();
        for (column, input) in named.given().filter(|(_, input)| !input.is_empty()) {
            columns.push(match (column.element, input) {
                (Element::Real, Input::Numbers(tensor, _)) => {
                    // only logits are read in half precision
                    let halves = matches!(tensor.dtype(), DType::F16 | DType::BF16) && column.kind != Kind::Logit;
                    let tensor = if halves { tensor.clone().cast(DType::F32) } else { tensor.clone() };
                    (column.name, self.column(column.name, &tensor)?)
                }
                (Element::Index, Input::Ints(tensor, _)) if column.name == "tokens" && words(tensor.dtype()) => {
                    (column.name, self.id_column(column.name, tensor)?)
                }
                _ => continue,
            });
        }
        Ok(columns)
    }

    /// The results, or why the device did not answer.
    fn try_run(
        &self,
        entry: &'static Entry,
        domain: Domain<'_>,
        named: &Named<'_, '_>,
        config: &Value,
        resident: &[(&'static str, Column)],
    ) -> Result<std::result::Result<Results, Reason>> {
        let on_device = |name: &str| resident.iter().any(|(known, _)| *known == name);
        let columns = named.columns_but::<f32>(on_device)?;
        let mut none = Columns::new();
        let call = Call::new(domain.batch, domain.groups, &columns, config, &mut none);
        let mut recording = self.gpu().record();
        let answer = match recording.call(entry, &call, resident) {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(reason(entry, error))),
        };
        let mut outputs = Vec::new();
        for (name, column) in &answer.columns {
            if column.is_empty() {
                return Ok(Err(Reason::Failed(GpuError::Unsupported("there is nothing to compute"))));
            }
            let tensor = self.tensor(&mut recording, column, [column.len() as usize])?;
            outputs.push((*name, tensor));
        }
        let done = match pollster::block_on(recording.submit()) {
            Ok(done) if done.report().special => return Ok(Err(Reason::Special)),
            Ok(done) => done,
            Err(error) => return Ok(Err(Reason::Failed(error))),
        };

        let numbers = answer.numbers.map_or_else(Vec::new, |numbers| done.get(&numbers));
        let numbers = numbers.into_iter().map(|(name, number)| (name.into(), number)).collect();
        let mut results = Results { outputs: Vec::new(), numbers, report: Some(done.report().clone()) };
        let strategy = named.device().gradient_checkpointing_strategy();
        for (name, tensor) in outputs {
            let Some(column) = entry.outputs.iter().find(|column| column.name == name) else { continue };
            let dims = named.shape(column.kind, tensor.shape().num_elements());
            let output = match column.element {
                Element::Flag => Output::Bools(tensor.equal_scalar(0.0).bool_not()),
                // on the device of the inputs, as the host would put it
                _ => Output::Numbers(match strategy {
                    Some(strategy) => tensor.autodiff().with_gradient_checkpointing_strategy(strategy),
                    None => tensor,
                }),
            };
            results.outputs.push((name, output, dims));
        }
        Ok(Ok(results))
    }
}

/// Whether ids of this type are words that kernels read.
pub(super) const fn words(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::U32)
}

/// Why the device did not answer a call that it refused.
fn reason(entry: &Entry, error: GpuError) -> Reason {
    let covered = tokenwise_gpu::coverage::table().find(|(name, _)| *name == entry.name);
    match covered {
        Some((_, Some(none))) => Reason::NoKernel(none),
        _ => Reason::Failed(error),
    }
}
