//! The module for a browser: one file of golden cases a call, and calls with random numbers.

use std::{collections::BTreeMap, rc::Rc};

use js_sys::Promise;
use tokenwise_gpu::Gpu;
use tokenwise_tests::golden::{self, RecordedCall};
use wasm_bindgen::prelude::{wasm_bindgen, JsValue};
use wasm_bindgen_futures::future_to_promise;

use crate::{check, random, Answered};

/// A device for the cases of many files.
#[wasm_bindgen]
pub struct Device(Rc<Gpu>);

#[wasm_bindgen]
impl Device {
    /// The device of the browser.
    pub async fn create() -> Result<Device, JsValue> {
        let gpu = Gpu::new().await.map_err(|error| JsValue::from(error.to_string()))?;
        Ok(Self(Rc::new(gpu)))
    }

    /// Runs the cases of a file. JSON: by formula, how many calls were answered by whom; and every difference.
    pub fn run(&self, file: String, text: String) -> Promise {
        self.check_all(golden::calls_of(&file, &text))
    }

    /// The same for one call of every covered formula with random numbers.
    pub fn run_random(&self) -> Result<Promise, JsValue> {
        Ok(self.check_all(random::calls()?))
    }
}

impl Device {
    fn check_all(&self, calls: Vec<RecordedCall>) -> Promise {
        let gpu = Rc::clone(&self.0);
        future_to_promise(async move {
            let mut answers = BTreeMap::<(&str, &str), usize>::new();
            let mut differences = Vec::new();
            for call in calls {
                let who = match check(&gpu, &call).await {
                    Ok(Answered::Device) => "device",
                    Ok(Answered::Core) => "core",
                    Ok(Answered::Refused) => "refused",
                    Ok(Answered::LeftOut) => continue,
                    Err(difference) => {
                        differences.push(difference);
                        continue;
                    }
                };
                *answers.entry((call.name, who)).or_default() += 1;
            }
            let answers: Vec<_> = answers.iter().map(|((formula, who), calls)| (formula, who, calls)).collect();
            Ok(serde_json::json!({ "answers": answers, "differences": differences }).to_string().into())
        })
    }
}
