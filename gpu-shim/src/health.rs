//! Device errors that arrive between calls.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::GpuError;

/// The last error reported by a device. wgpu delivers errors to callbacks, at any time and from any thread; without
/// these callbacks it would panic.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health(Arc<Mutex<Option<GpuError>>>);

impl Health {
    /// Records what `device` reports from now on.
    pub(crate) fn of(device: &wgpu::Device) -> Self {
        let health = Self::default();
        let heard = health.clone();
        device.set_device_lost_callback(move |reason, message| {
            heard.hear(GpuError::Lost(format!("{reason:?}: {message}")));
        });
        let heard = health.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| heard.hear(error.into())));
        health
    }

    fn hear(&self, news: GpuError) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // a lost device overrides every other error
        if !matches!(*held, Some(GpuError::Lost(_))) {
            *held = Some(news);
        }
    }

    /// Runs calls into wgpu. A panic inside them becomes an error, and the device counts as lost: its state is unknown.
    /// In the browser a panic ends the module, and there is none to catch.
    pub(crate) fn shielded<T>(&self, work: impl FnOnce() -> T) -> Result<T, GpuError> {
        #[cfg(target_arch = "wasm32")]
        return Ok(work());
        #[cfg(not(target_arch = "wasm32"))]
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
            let lost = GpuError::Lost(format!("wgpu panicked: {text}"));
            self.hear(lost.clone());
            lost
        })
    }

    /// The recorded error. A lost device stays lost; any other error is reported once.
    pub(crate) fn check(&self) -> Result<(), GpuError> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*held {
            None => Ok(()),
            Some(GpuError::Lost(why)) => Err(GpuError::Lost(why.clone())),
            Some(_) => held.take().map_or(Ok(()), Err),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_device_stays_lost_and_other_news_are_told_once() {
        let health = Health::default();
        assert_eq!(health.check(), Ok(()));
        health.hear(GpuError::OutOfMemory);
        assert_eq!(health.check(), Err(GpuError::OutOfMemory));
        assert_eq!(health.check(), Ok(()));
        health.hear(GpuError::Lost("gone".into()));
        health.hear(GpuError::OutOfMemory);
        for _ in 0..2 {
            assert_eq!(health.check(), Err(GpuError::Lost("gone".into())));
        }
    }

    #[test]
    fn a_panic_becomes_a_lost_device() {
        let health = Health::default();
        assert_eq!(health.shielded(|| 3), Ok(3));
        let lost = health.shielded(|| panic!("inside {}", "wgpu")).unwrap_err();
        assert_eq!(lost, GpuError::Lost("wgpu panicked: inside wgpu".into()));
        assert_eq!(health.check(), Err(lost));
    }
}
