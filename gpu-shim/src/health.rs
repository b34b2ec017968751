//! What a device says about itself between calls.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::GpuError;

/// The last bad news of a device. wgpu delivers them to callbacks, at any time and from any thread; without these callbacks
/// it would panic.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health(Arc<Mutex<Option<GpuError>>>);

impl Health {
    /// A health that hears what `device` reports from now on.
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
        // nothing is worse than a lost device
        if !matches!(*held, Some(GpuError::Lost(_))) {
            *held = Some(news);
        }
    }

    /// Records that the device is lost.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn lose(&self, why: &str) {
        self.hear(GpuError::Lost(why.into()));
    }

    /// The bad news. A lost device stays lost; anything else is told once.
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
        health.lose("gone");
        health.hear(GpuError::OutOfMemory);
        for _ in 0..2 {
            assert_eq!(health.check(), Err(GpuError::Lost("gone".into())));
        }
    }
}
