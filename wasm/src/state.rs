//! What goes on from one call to the next: objects with memory of their own.

use ::core::cell::RefCell;
use alloc::rc::Rc;
use alloc::vec::Vec;

use tokenwise::{
    advantage::RoleBaseline,
    metric::{self as core},
};
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::{read, Element},
    batch::{shared, Owned},
    error::Result,
    metric::count,
    object::{number, object, size},
};

/// The running baseline of each role; `roleBaseline` goes on from it.
#[wasm_bindgen(skip_typescript)]
pub struct RoleBaselines(Rc<RefCell<Vec<RoleBaseline>>>);

#[wasm_bindgen]
impl RoleBaselines {
    /// One per role, all at 0.
    #[wasm_bindgen(constructor, skip_typescript)]
    #[allow(private_interfaces, reason = "only JavaScript calls it, which sees the error as a thrown value")]
    pub fn new(roles: &JsValue, decay: &JsValue) -> Result<RoleBaselines> {
        let baseline = RoleBaseline::new(number("decay", decay)?)?;
        let roles = size("roles", roles)?;
        let mut all = Vec::new();
        all.try_reserve_exact(roles).map_err(|_| crate::error::no_memory(roles))?;
        all.resize(roles, baseline);
        Ok(Self(Rc::new(RefCell::new(all))))
    }

    /// A second handle to the same baselines, freed by itself.
    #[wasm_bindgen(skip_typescript, js_name = "clone")]
    pub fn share(&self) -> RoleBaselines {
        Self(Rc::clone(&self.0))
    }

    /// What the next score of each role is compared with.
    #[wasm_bindgen(getter, skip_typescript)]
    pub fn values(&self) -> JsValue {
        f64::array(&self.0.borrow().iter().map(RoleBaseline::baseline).collect::<Vec<_>>())
    }
}

impl RoleBaselines {
    /// Nothing else holds them: JavaScript has one thread, and no kernel calls back.
    pub(crate) fn with(
        &self,
        kernel: &mut dyn FnMut(&mut [RoleBaseline]) -> tokenwise::Result<()>,
    ) -> tokenwise::Result<()> {
        kernel(&mut self.0.borrow_mut())
    }
}

/// How often each size of number occurred.
#[wasm_bindgen(skip_typescript)]
pub struct Histogram(Rc<RefCell<core::Histogram>>);

#[wasm_bindgen]
impl Histogram {
    /// Nothing counted yet.
    #[wasm_bindgen(constructor, skip_typescript)]
    #[allow(clippy::new_without_default, reason = "only JavaScript calls it")]
    pub fn new() -> Histogram {
        Self(Rc::default())
    }

    /// A second handle to the same histogram, freed by itself.
    #[wasm_bindgen(skip_typescript, js_name = "clone")]
    pub fn share(&self) -> Histogram {
        Self(Rc::clone(&self.0))
    }

    /// Counts the kept values, of either precision.
    #[wasm_bindgen(skip_typescript)]
    #[allow(private_interfaces, reason = "only JavaScript calls it, which sees the error as a thrown value")]
    pub fn add(&self, batch: &JsValue, values: &JsValue) -> Result<()> {
        let batch = Owned::read(batch)?;
        let (batch, mut histogram) = (batch.view()?, self.0.borrow_mut());
        match f32::copied(values) {
            Some(values) => histogram.add(&batch, &values?)?,
            None => histogram.add(&batch, &read::<f64>("values", values)?)?,
        }
        Ok(())
    }

    /// Joins the counts of another histogram.
    #[wasm_bindgen(skip_typescript)]
    #[allow(private_interfaces, reason = "only JavaScript calls it, which sees the error as a thrown value")]
    pub fn merge(&self, other: &JsValue) -> Result<()> {
        let other = shared::<Histogram>("other", "a Histogram", other)?;
        // a copy, for it may be this one
        let other = other.0.borrow().clone();
        self.0.borrow_mut().merge(&other);
        Ok(())
    }

    /// How many numbers were counted.
    #[wasm_bindgen(getter, skip_typescript)]
    pub fn count(&self) -> JsValue {
        count(self.0.borrow().count())
    }

    /// The number with a share `level` of the others below it.
    #[wasm_bindgen(skip_typescript)]
    #[allow(private_interfaces, reason = "only JavaScript calls it, which sees the error as a thrown value")]
    pub fn quantile(&self, level: &JsValue) -> Result<f64> {
        Ok(self.0.borrow().quantile(number("level", level)?)?)
    }
}

/// Mean and spread of all scores so far.
#[wasm_bindgen(skip_typescript)]
pub struct RunningMoments(RefCell<core::RunningMoments>);

#[wasm_bindgen]
impl RunningMoments {
    /// Nothing taken in yet.
    #[wasm_bindgen(constructor, skip_typescript)]
    #[allow(clippy::new_without_default, reason = "only JavaScript calls it")]
    pub fn new() -> RunningMoments {
        Self(RefCell::default())
    }

    /// Takes in values of either precision; gives their own mean and deviation.
    #[wasm_bindgen(skip_typescript)]
    #[allow(private_interfaces, reason = "only JavaScript calls it, which sees the error as a thrown value")]
    pub fn update(&self, values: &JsValue) -> Result<JsValue> {
        let mut moments = self.0.borrow_mut();
        let (mean, std) = match f32::copied(values) {
            Some(values) => moments.update(&values?)?,
            None => moments.update(&read::<f64>("values", values)?)?,
        };
        object([("mean", mean.into()), ("std", std.into())])
    }

    /// How many numbers were taken in.
    #[wasm_bindgen(getter, skip_typescript)]
    pub fn count(&self) -> f64 {
        self.0.borrow().count()
    }

    /// Their mean.
    #[wasm_bindgen(getter, skip_typescript)]
    pub fn mean(&self) -> f64 {
        self.0.borrow().mean()
    }

    /// Their variance, divided by `n`.
    #[wasm_bindgen(getter, skip_typescript)]
    pub fn variance(&self) -> f64 {
        self.0.borrow().variance()
    }

    /// Their standard deviation, divided by `n − 1`.
    #[wasm_bindgen(getter, skip_typescript)]
    pub fn std(&self) -> f64 {
        self.0.borrow().std()
    }
}
