//! Formulas on WebGPU. Nothing here blocks: a call reads its arguments, then gives a promise.

use std::rc::Rc;

use js_sys::{Function, Promise, Reflect};
use tokenwise_gpu::{coverage, Engine, GpuError, Ran, Report};
use wasm_bindgen::{
    prelude::{wasm_bindgen, JsValue},
    JsCast,
};
use wasm_bindgen_futures::{future_to_promise, JsFuture};

use crate::{
    batch::Batch,
    call::Call,
    error::{Result, Thrown},
    names::snake_case,
    write::Record,
};

#[wasm_bindgen]
extern "C" {
    /// `std` has no clock on this target.
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn now() -> f64;
}

/// The device of the browser. What it cannot answer, the core does, and the report says why.
#[wasm_bindgen(skip_typescript)]
pub struct Gpu {
    engine: Rc<Engine>,
    adapter: Rc<str>,
}

#[wasm_bindgen]
impl Gpu {
    /// Asks the browser for a device; refused with the code `no_adapter` where it has none.
    pub async fn create() -> Result<Gpu> {
        if !has_webgpu() {
            return Err(GpuError::NoAdapter("there is no WebGPU here".into()).into());
        }
        let device = tokenwise_gpu::Gpu::new().await?;
        let adapter = match device.info().name.as_str() {
            "" => adapter_name().await.unwrap_or_else(|| "WebGPU".into()),
            name => name.into(),
        };
        Ok(Self { engine: Rc::new(Engine::gpu(device)), adapter: adapter.into() })
    }

    /// What the browser calls the device.
    #[wasm_bindgen(getter)]
    pub fn adapter(&self) -> String {
        self.adapter.as_ref().into()
    }

    /// Why the core computes a formula; `undefined` if it has a kernel.
    #[wasm_bindgen(js_name = whyCore)]
    pub fn why_core(name: &str) -> Option<String> {
        let name = snake_case(name);
        let found = coverage::table().find(|(known, _)| *known == name);
        found.map_or_else(|| Some("not a formula of the catalogue".into()), |(_, why)| why.map(|why| why.reason.into()))
    }

    /// Runs a call over the tokens of a batch.
    pub fn over(&self, call: Call, batch: &Batch) -> Result<Promise> {
        self.run(call, Some(batch.share()))
    }

    /// Runs a call without a batch.
    pub fn alone(&self, call: Call) -> Result<Promise> {
        self.run(call, None)
    }
}

impl Gpu {
    fn run(&self, call: Call, batch: Option<Batch>) -> Result<Promise> {
        let call = call.detached()?;
        let (engine, adapter) = (Rc::clone(&self.engine), Rc::clone(&self.adapter));
        Ok(future_to_promise(async move {
            let start = now();
            let (result, report) = call.run_on(&engine, batch.as_ref()).await?;
            let report = written(report.as_ref(), &adapter, now() - start)?;
            let answer = Record::new();
            answer.entry("result", result)?;
            answer.entry("report", report)?;
            Ok(answer.into())
        }))
    }
}

/// Whether this is a browser with WebGPU. wgpu ends the module where there is no browser.
fn has_webgpu() -> bool {
    let global = js_sys::global();
    let has = |name: &str| Reflect::get(&global, &name.into()).is_ok_and(|found| !found.is_undefined());
    let navigator = Reflect::get(&global, &"navigator".into());
    let gpu = navigator.and_then(|navigator| Reflect::get(&navigator, &"gpu".into()));
    (has("Window") || has("WorkerGlobalScope")) && gpu.is_ok_and(|gpu| gpu.is_object())
}

/// What the browser says of the adapter that wgpu was given; wgpu reads its description only, which may be empty.
async fn adapter_name() -> Option<String> {
    let get = |of: &JsValue, name: &str| Reflect::get(of, &name.into()).ok();
    let gpu = get(&get(&js_sys::global(), "navigator")?, "gpu")?;
    let options = Record::new();
    options.entry("powerPreference", "high-performance").ok()?;
    let request: Function = get(&gpu, "requestAdapter")?.dyn_into().ok()?;
    let adapter: Promise = request.call1(&gpu, &options.into()).ok()?.dyn_into().ok()?;
    let info = get(&JsFuture::from(adapter).await.ok()?, "info")?;
    let words = ["vendor", "architecture"].map(|name| get(&info, name).and_then(|word| word.as_string()));
    let words: Vec<_> = words.into_iter().flatten().filter(|word| !word.is_empty()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// A report for JavaScript.
fn written(report: Option<&Report>, adapter: &str, milliseconds: f64) -> core::result::Result<JsValue, Thrown> {
    let record = Record::new();
    let (ran, code, reason) = match report.map(|report| &report.ran) {
        Some(Ran::Gpu) => ("gpu", JsValue::NULL, JsValue::NULL),
        Some(Ran::Core(reason)) => ("core", reason.code().into(), reason.to_string().into()),
        None => ("core", "precision".into(), "the device computes in f32".into()),
    };
    record.field("ran", ran)?;
    record.field("code", code)?;
    record.field("reason", reason)?;
    record.field("adapter", adapter)?;
    record.field("milliseconds", milliseconds)?;
    let device = report.and_then(|report| report.device);
    record.field("device_milliseconds", device.map_or(JsValue::NULL, |time| (time.as_secs_f64() * 1e3).into()))?;
    let (up, down, dispatches) =
        report.map_or((0, 0, 0), |report| (report.bytes_up, report.bytes_down, report.dispatches));
    record.field("bytes_up", up as f64)?;
    record.field("bytes_down", down as f64)?;
    record.field("dispatches", dispatches)?;
    Ok(record.into())
}
