//! Baselines by role, which move from call to call.

use std::{cell::RefCell, rc::Rc};

use tokenwise::advantage::{role_baseline, RoleBaseline, RoleInput};
use wasm_bindgen::prelude::{wasm_bindgen, JsValue};

use crate::{
    error::Result,
    read::{field, number, object, reals, size, words, zeros, Precision},
};

/// One baseline per role; clones share them.
#[wasm_bindgen(skip_typescript)]
#[derive(Clone)]
pub struct RoleBaselines(Rc<RefCell<Vec<RoleBaseline>>>);

#[wasm_bindgen]
impl RoleBaselines {
    /// All at 0.
    #[wasm_bindgen(constructor)]
    pub fn new(roles: &JsValue, decay: &JsValue) -> Result<RoleBaselines> {
        let (roles, baseline) = (size("roles", roles)?, RoleBaseline::new(number("decay", decay)?)?);
        // room for as many, before the real ones are made
        zeros::<[u64; 2]>(roles)?;
        Ok(Self(Rc::new(RefCell::new(vec![baseline; roles]))))
    }

    /// A second handle to the same baselines.
    #[wasm_bindgen(js_name = clone)]
    pub fn share(&self) -> RoleBaselines {
        self.clone()
    }

    /// The baselines now.
    #[wasm_bindgen(getter)]
    pub fn values(&self) -> Vec<f64> {
        self.0.borrow().iter().map(RoleBaseline::baseline).collect()
    }

    fn run<R: Precision>(&self, input: &JsValue) -> Result {
        object("input", input)?;
        let (roles, scores) =
            (words("roles", &field(input, "roles")?)?, reals::<R>("scores", &field(input, "scores")?)?);
        let mut out = zeros(scores.len())?;
        role_baseline(RoleInput { roles: &roles, scores: &scores }, &mut self.0.borrow_mut(), &mut out)?;
        Ok(R::write(&out, None))
    }
}

/// Scores minus the baseline of their role, in `f32`.
#[wasm_bindgen(js_name = roleBaseline, skip_typescript)]
pub fn role_baseline_f32(baselines: &RoleBaselines, input: &JsValue) -> Result {
    baselines.run::<f32>(input)
}

/// The same in `f64`.
#[wasm_bindgen(js_name = roleBaselineF64, skip_typescript)]
pub fn role_baseline_f64(baselines: &RoleBaselines, input: &JsValue) -> Result {
    baselines.run::<f64>(input)
}
