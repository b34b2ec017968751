//! Formulas on burn's wgpu device, over the buffers of its tensors (feature `wgpu`).
//!
//! [`OnDevice`] has the functions of this crate as methods of the same names. Their inputs are read where burn keeps
//! them and their results are written into buffers of burn, by the kernels of [`tokenwise_gpu`]; the host sees the
//! numbers of a loss, but no tensor. Where the device cannot answer, the function of the same name on the host does,
//! and [`Results::report`](crate::Results::report) says why.
//!
//! ```no_run
//! use burn::tensor::Tensor;
//! use tokenwise::{Batch, Layout, Mask};
//! use tokenwise_burn::{wgpu::OnDevice, PolicyInput};
//!
//! let gpu = OnDevice::new()?; // before the first tensor on the device
//! let device = gpu.device().autodiff();
//! let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, true]))?;
//! let log_probs = Tensor::<2>::from_floats([[-1.0, -0.5]], &device).require_grad();
//! let advantages = Tensor::<2>::from_floats([[2.0, -1.0]], &device);
//! let old = log_probs.clone().detach();
//! let loss = gpu.ppo_clip(&batch, PolicyInput::new(&log_probs, &old, &advantages), &Default::default())?;
//! let gradients = loss.backward()?;
//! # Ok::<(), tokenwise_burn::Error>(())
//! ```
//!
//! # Order
//!
//! burn and tokenwise-gpu submit to one queue, which keeps the order. Operations of burn that still wait to be
//! submitted, fused ones included, are submitted before a column of their result is made. Each method returns when its
//! work on the device is done.
//!
//! # Chains
//!
//! [`OnDevice::column`] gives a tensor to a [`Recording`] of your own and [`OnDevice::tensor`] takes a column back, so
//! that several formulas are one submission:
//!
//! ```no_run
//! use burn::tensor::Tensor;
//! use tokenwise::{Batch, Layout, Mask};
//! use tokenwise_burn::wgpu::OnDevice;
//! use tokenwise_gpu::{GaeColumns, GpuBatch};
//!
//! let gpu = OnDevice::new()?;
//! let (rewards, values) = (Tensor::<2>::ones([1, 2], gpu.device()), Tensor::<2>::ones([1, 2], gpu.device()));
//! let bootstrap = Tensor::<1>::zeros([1], gpu.device());
//!
//! let batch = GpuBatch::new(Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, true]))?);
//! let mut recording = gpu.gpu().record();
//! let input = GaeColumns {
//!     rewards: gpu.column("rewards", &rewards)?.into(),
//!     values: gpu.column("values", &values)?.into(),
//!     bootstrap: gpu.column("bootstrap", &bootstrap)?.into(),
//! };
//! let (advantages, _) = recording.gae(&batch, &input, &Default::default())?;
//! let white = recording.whiten(&batch, &advantages.into(), &Default::default())?;
//! let white: Tensor<2> = gpu.tensor(&mut recording, &white, [1, 2])?;
//! let done = pollster::block_on(recording.submit())?;
//! # Ok::<(), tokenwise_burn::Error>(())
//! ```

use std::sync::Arc;

use burn::tensor::{
    wgpu::{WgpuOptions, WgpuSetup},
    Device,
};
use tokenwise_gpu::{Gpu, GpuOptions};

use crate::{Error, Result};

mod call;
mod policy;
mod tensors;

pub use tokenwise_gpu::{Ran, Reason, Recording, Report};

/// A wgpu device of burn, and [`tokenwise_gpu`] on the same device and queue. Clones share it.
#[derive(Clone, Debug)]
pub struct OnDevice(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    device: Device,
    gpu: Gpu,
}

impl OnDevice {
    /// Initializes burn's default wgpu device. burn initializes a device once, and also when a tensor is first put on
    /// it: call this before.
    ///
    /// # Errors
    ///
    /// [`Error::Init`] if burn finds no device or has initialized it already; [`Error::Gpu`] if the limits of the
    /// device are below what the shaders need.
    pub fn new() -> Result<Self> {
        Self::with(Device::wgpu_options(), &GpuOptions::default())
    }

    /// As [`Self::new`], with options. Of those of tokenwise-gpu only the numbers of bytes count.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn with(burn: WgpuOptions, options: &GpuOptions) -> Result<Self> {
        let (device, setup) = burn.init_with_setup()?;
        Self::from_setup(device, &setup, options)
    }

    /// Over a device that burn has initialized, and the handles that it returned
    /// (`Device::wgpu_options().init_with_setup()`) or was given (`Device::wgpu_options().setup(…).init()`). The error
    /// callbacks of the wgpu device are replaced.
    ///
    /// # Errors
    ///
    /// [`Error::Gpu`] if the limits of the device are below what the shaders need.
    pub fn from_setup(device: Device, setup: &WgpuSetup, options: &GpuOptions) -> Result<Self> {
        let gpu = Gpu::from_device(setup.device.clone(), setup.queue.clone(), setup.adapter.get_info(), options)?;
        Ok(Self(Arc::new(Shared { device: device.inner(), gpu })))
    }

    /// burn's device, without autodiff.
    pub fn device(&self) -> Device {
        self.0.device.clone()
    }

    /// The device for recordings of your own.
    pub fn gpu(&self) -> &Gpu {
        &self.0.gpu
    }

    /// A tensor of another device is refused: its buffer means nothing here.
    fn check_device(&self, input: &str, got: Device) -> Result<()> {
        let got = got.inner();
        if got == self.0.device {
            return Ok(());
        }
        Err(Error::Device {
            input: input.to_owned(),
            expected: format!("{:?}", self.0.device),
            got: format!("{got:?}"),
        })
    }
}
